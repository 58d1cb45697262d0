#!/bin/sh
# Cadge 0.2.0, revision e613048870b162bf32ace591320ecfb3ade68331: in a checkout of it, after `make build`
set -eu
cadge run --sweep reference --tune
