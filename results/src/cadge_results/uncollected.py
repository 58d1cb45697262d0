# SPDX-License-Identifier: BSD-3-Clause
"""Work that makes millions of objects which all stay: Python's search for unreachable cycles is put off meanwhile.

Each such search looks at everything that is there, and finds nothing: a fifth of the time of a full campaign.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Put the search off; also as a decorator. Within another one it changes nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
