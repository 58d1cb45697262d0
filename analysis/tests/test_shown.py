# SPDX-License-Identifier: BSD-3-Clause
"""Values of cells as tables show them: absent ones with their reasons, each kind of verdict, a series beside itself."""

from __future__ import annotations

from math import log
from types import SimpleNamespace
from typing import Any

import pytest

from cadge_analysis import messages, units, words
from cadge_analysis.cells import build, shown


def test_an_absent_number_has_its_reason() -> None:
    absent = shown.Value(text=units.MISSING, reason="why")
    assert shown.plain_value(None, reason="why") == absent
    assert shown.cost_value(None, "why") == absent
    assert shown.estimate_value(None, scale=1.0, reason="why") == absent
    assert shown.plain_value(2500.0, scale=0.001).text == "2.50"


def test_what_would_decide_a_verdict() -> None:
    def more(
        *,
        withheld: str = "",
        ratio: object = 1.0,
        launches: int | None = None,
        levels: bool = False,
        epochs: int = 0,
        disagree: bool = False,
    ) -> str:
        known = {
            "withheld": withheld,
            "more": launches,
            "two_levels": levels,
            "epochs": (0.1,) * epochs,
            "epochs_disagree": disagree,
        }
        one: Any = SimpleNamespace(verdict=SimpleNamespace(**known), ratio=ratio)
        return shown.more_text(one)

    assert more(withheld="why") == "withheld"
    assert more(ratio=None) == messages.say("cells", "shown.no_launch_both_gave")
    assert not more()
    assert more(levels=True) == messages.say("cells", "shown.more_launches_alone_would")
    assert more(launches=12) == messages.say("cells", "shown.at_least_more", more=12)
    assert more(epochs=2, disagree=True) == messages.say("cells", "shown.epochs_disagree")
    assert more(epochs=4) == messages.say("cells", "shown.more_epochs_alone_would")


@pytest.mark.parametrize(
    ("without", "label", "ranks", "reason"),
    [
        ("none was run", "a-one", False, "none was run"),
        ("", "a-one", False, "the baseline"),
        ("", "b-two", False, words.RANKS_NOTHING),
        ("", "b-two", True, messages.say("cells", "shown.baseline_not_measured_here")),
    ],
)
def test_a_row_without_a_verdict_says_why(without: str, label: str, ranks: bool, reason: str) -> None:
    case, series = SimpleNamespace(does_rank=ranks), SimpleNamespace(label=label)
    row: Any = SimpleNamespace(cell=SimpleNamespace(point_id="p", series=series, case=case))
    verdicts: Any = SimpleNamespace(without={"p": without}, baselines={"a-one"})
    assert shown.verdict_value(None, row, verdicts) == shown.Value(text=units.MISSING, reason=reason)


@pytest.mark.parametrize(("better", "ratio"), [("low", 2.0), ("high", 0.5)])
def test_a_series_beside_itself(monkeypatch: pytest.MonkeyPatch, better: str, ratio: float) -> None:
    """The ratio is above 1 where the second is slower, whichever way a quantity is better."""
    file = SimpleNamespace(main_quantity=SimpleNamespace(better=better))
    cell = SimpleNamespace(point_id="p", case=SimpleNamespace(file=file))
    one = SimpleNamespace(cell=cell, log_ratio=log(2.0), p=0.25, launches=9)
    monkeypatch.setattr(build, "twin_cells", lambda *_, measure: [one] if measure is build.MAIN else [])
    nothing: Any = None
    found = build._itself(nothing, nothing)["p"]
    assert found == {"itself_ratio": pytest.approx(ratio), "itself_p": 0.25, "itself_launches": 9}
