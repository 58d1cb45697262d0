# SPDX-License-Identifier: BSD-3-Clause
"""What `make test` leaves to `make long`: the further cases of a test, where the first few show what it is about.

    @pytest.mark.first(2)
    @pytest.mark.parametrize("size", [8, 64, 512, 4096])
    def test_every_size(size: int) -> None: ...

With this plugin the cases after the second are marked `long`.
"""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them, before anything is selected by its marks."""
    seen: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("first")
        if marker is None or item.get_closest_marker("long") is not None:
            continue
        name = item.nodeid.partition("[")[0]
        seen[name] += 1
        if seen[name] > marker.args[0]:
            item.add_marker(pytest.mark.long)
