# SPDX-License-Identifier: BSD-3-Clause
"""Which build measures: one digest of the driver and of every built layer, as they lie here."""

from __future__ import annotations

import hashlib

from cadge_harness.paths import Checkout


def build_digest(checkout: Checkout) -> str:
    """Return the SHA-256 over names and contents, in the order of names; what is not there is not in it."""
    whole = hashlib.sha256()
    for path in (checkout.driver, *sorted(checkout.modules.glob("*.so"))):
        if path.is_file():
            whole.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
