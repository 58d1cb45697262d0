# SPDX-License-Identifier: BSD-3-Clause
"""One list of reasons, for Python and C."""

from __future__ import annotations

import re
from pathlib import Path

from cadge_results import Reason
from cadge_results.formats.reason import OF_THE_DRIVER, OF_THE_HARNESS

DRIVER = Path(__file__).parents[2] / "harness" / "driver"


def test_the_drivers_list_is_ours() -> None:
    text = (DRIVER / "base/fail.h").read_text()
    names = set(re.findall(r"^\s*(?:DRV_|X\(|R\()([A-Z_]+)\b", text, re.MULTILINE)) - {"OK", "REASONS", "FAIL_H"}
    assert names == {str(reason) for reason in OF_THE_DRIVER}


def test_what_becomes_of_a_point() -> None:
    assert Reason("PORT").verdict == "failed"
    assert Reason("NO_CAP").verdict == Reason("PLACE").verdict == "refused"
    assert Reason("CHECK").verdict == Reason("UNSOUND").verdict == "unsound"
    assert Reason("ARGUMENT").verdict == "error"
    assert OF_THE_HARNESS.isdisjoint(OF_THE_DRIVER)
