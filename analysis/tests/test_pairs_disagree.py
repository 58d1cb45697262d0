# SPDX-License-Identifier: BSD-3-Clause
"""A median of paired ratios that the medians beside it contradict says so, in whatever table it stands."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ablated
import pytest
import synthetic
from pageparts import sections

from cadge_analysis import export, units
from cadge_analysis.blocks import bars
from cadge_analysis.blocks.make import tables_of
from cadge_analysis.blocks.ranked import Picture
from cadge_analysis.cells import shown
from cadge_analysis.cells.shown import Value
from cadge_analysis.judged import judged
from cadge_analysis.page.parts import ablation_table
from cadge_analysis.page.ranked import pictured
from cadge_analysis.page.views import of_campaign, page
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import do_disagree, ratio
from cadge_analysis.stats.load import read
from cadge_results import Campaign

FIRST = (290, 100, 146, 290, 100, 100, 290, 290, 100)
SECOND = (261, 300, 131, 261, 300, 90, 261, 261, 90)
"""Round by round 0.9 in seven of nine rounds, and 3 in two; the medians are 146 and 261."""
CALM = tuple(round(0.9 * one) for one in FIRST)
Hook = Callable[[dict[str, Any], dict[str, Any], int], None]


def in_rounds(second: Sequence[int], is_first: Callable[[dict[str, Any]], bool], quantity: str = "latency") -> Hook:
    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        values = FIRST if is_first(synthetic.flat(point)) else second
        attempt["quantities"] = {}
        synthetic.set_samples(attempt, [(values[number] * 1000, 2000)], quantity)

    return hook


def made(folder: Path, hook: Hook, **changes: Any) -> Campaign:  # noqa: ANN401
    usual: dict[str, Any] = {
        "layers": ("sockets-tcp", "native-ucx"),
        "sizes": (8,),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1),),
        "launches": len(FIRST),
        "floors": False,
        "troubles": False,
        "attempt_hook": hook,
    }
    return synthetic.make(folder, synthetic.Options(**(usual | changes)))


def of_layers(folder: Path, second: Sequence[int]) -> Campaign:
    return made(folder, in_rounds(second, lambda known: known["layer"] == "sockets-tcp"))


@pytest.mark.parametrize(
    ("medians", "pairs", "low", "high", "says"),
    [
        (0.58, -0.105, -0.105, 1.1, True),  # on the other side of 1, within the interval
        (0.58, 0.105, 0.05, 0.2, True),  # beyond the interval
        (0.58, 0.4, 0.05, 1.2, False),  # within it, on the same side
        (0.02, -0.02, None, None, False),  # too close to contradict anything
        (0.05, -0.05, None, None, True),
    ],
)
def test_medians_contradict_pairs(medians: float, pairs: float, low: float, high: float, says: bool) -> None:
    assert do_disagree(medians, pairs, low, high) is says
    mirrored = (None, None) if low is None else (-high, -low)
    assert do_disagree(-medians, -pairs, *mirrored) is says


@pytest.mark.parametrize(("second", "says"), [(SECOND, True), (CALM, False)])
def test_a_ratio_knows_it(second: Sequence[int], says: bool) -> None:
    ours, base = ({RoundKey(number): float(one) for number, one in enumerate(some)} for some in (second, FIRST))
    assert ratio(ours, base).pairs_disagree is says
    assert ratio(base, ours).pairs_disagree is says
    less = {key: value for key, value in base.items() if key[0] != 2}  # not paired: it is the ratio of the medians
    assert ratio(ours, less).pairs_disagree is False


@pytest.mark.parametrize(("second", "says"), [(SECOND, True), (CALM, False)])
def test_verdicts_say_it_in_table_sentence_and_export(tmp_path: Path, second: Sequence[int], says: bool) -> None:
    campaign = of_layers(tmp_path, second)
    comparison = compare(read(campaign))
    verdicts = judged(comparison)
    [one] = verdicts.by_point.values()
    assert one.pairs_disagree is says
    row = next(row for row in comparison.rows if row.cell.point_id == one.cell.point_id)
    value = shown.verdict_value(one, row, verdicts)
    assert (units.PAIRS_DISAGREE in value.detail) is says
    assert verdicts.tails is not None
    assert (units.PAIRS_DISAGREE in shown.tail_verdict_value(row, verdicts).detail) is says
    stream = io.StringIO()
    export.write(campaign, "csv", stream)
    found = {row["layer"]: row for row in csv.DictReader(io.StringIO(stream.getvalue()))}
    assert found["native-ucx"]["verdict_pairs_disagree"] == str(says)
    assert found["native-ucx"]["p99_verdict_pairs_disagree"] == str(says)


@pytest.mark.parametrize(("second", "says"), [(SECOND, True), (CALM, False)])
def test_columns_of_ratios_say_it(tmp_path: Path, second: Sequence[int], says: bool) -> None:
    """A pattern's own baseline, and a floor."""
    hook = in_rounds(second, lambda known: known["aggressor"] == "none")
    given = ({"aggressor": "none", "bulk_bytes": 32768}, {"aggressor": "same", "bulk_bytes": 32768})
    campaign = made(tmp_path / "mixed", hook, layers=("sockets-tcp",), patterns=(("mixed", 1),), given=given)
    built = page(compare(read(campaign)), of_campaign(generated="now"))
    details = [
        cell.detail
        for table in tables_of(sections(built))
        for line in table.lines
        for cell in line.cells
        if isinstance(cell, Value)
    ]
    assert any(units.PAIRS_DISAGREE in detail for detail in details) is says
    hook = in_rounds(second, lambda known: known["kind"] == "floor")
    rows = compare(read(made(tmp_path / "floors", hook, layers=("sockets-tcp",), floors=True))).rows
    assert [row.ratio.pairs_disagree for row in rows if row.ratio] == [says]


@pytest.mark.parametrize(("second", "says"), [(SECOND, True), (CALM, False)])
@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_picture_in_the_terminal_marks_it(
    tmp_path: Path, second: Sequence[int], says: bool, columns: int, unicode: bool
) -> None:
    hook = in_rounds(second, lambda known: known["kind"] == "floor")
    found = pictured(compare(read(made(tmp_path, hook, layers=("sockets-tcp",), floors=True))))
    assert [bar.pairs_disagree for one in found.questions for bar in one.bars] == [says]
    assert Picture.of(found.stored()) == found
    lines = bars.lines(found, most=12, columns=columns, unicode=unicode)
    assert any(line.endswith(f"floor{bars.DOUBT}") for line in lines) is says
    assert any(units.PAIRS_DISAGREE in line for line in lines) is says
    assert max(map(len, lines)) <= columns
    assert len(lines) <= 12


@pytest.mark.parametrize(("second", "says"), [(SECOND, True), (CALM, False)])
def test_ablations_say_it(tmp_path: Path, second: Sequence[int], says: bool) -> None:
    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        values = second if point["subject"]["settings"] else FIRST
        synthetic.set_samples(attempt, [(values[number] * 1000, 2000)])

    found = ablation_table.answer(ablated.make(tmp_path, launches=len(FIRST), attempt_hook=hook))
    told = [row["pairs_disagree"] for row in found.data["rows"] if row["ratio"]]  # type: ignore[attr-defined]
    assert set(told) == {says}
    text = " ".join(cell for table in found.tables for row in table.rows for cell in row)
    assert (units.PAIRS_DISAGREE in text) is says
