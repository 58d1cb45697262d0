# SPDX-License-Identifier: BSD-3-Clause
"""Which build measures: one digest of the driver and of every built layer, as they lie here."""

from __future__ import annotations

import hashlib

from cadge_harness.paths import Checkout
from cadge_results.plugins.build import AT, CADGE


def build_digest(checkout: Checkout) -> str:
    """Return the SHA-256 over names and contents, in the order of names; what is not there is not in it.

    Builds of Cadge beside this one are not: their build ids stand in the plan.
    """
    whole = hashlib.sha256()
    for path in (checkout.driver, *sorted(checkout.modules.glob("*.so"))):
        if path.is_file() and f"{AT}{CADGE}-" not in path.name:
            whole.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
