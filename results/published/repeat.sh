#!/bin/sh
# Cadge 0.2.0, revision eaf9aa0dedaa694d571b7b16b26a0dd0e7202a54: in a checkout of it, after `make build`
# (left out): put your own there; 20261130T134445Z-c9ce21a9/sweep.yml is the sweep
set -eu
cadge run --results '(left out)'
