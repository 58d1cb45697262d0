# SPDX-License-Identifier: BSD-3-Clause
"""Two campaigns, or two layers of one: what is matched, what differed around them, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from scaled import scaled

from cadge_analysis import units
from cadge_analysis.messages import say
from cadge_analysis.page.parts.since import findings_of
from cadge_analysis.stats import load
from cadge_analysis.stats.campaign_verdicts import judge_campaign
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.decide import decide
from cadge_analysis.stats.inference.look_plan import looks_planned
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.intervals import over_launches
from cadge_analysis.versus.against import SideComparison, against
from cadge_analysis.versus.as_data import document
from cadge_analysis.versus.conditions import boots, holds
from cadge_analysis.versus.drift_words import moved_alike
from cadge_analysis.versus.forbidden import forbids
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign, SelftestPin
from cadge_results.formats.selftest import BetweenCampaigns, machine_of

SLOW = "native-ucx"
FAST = "sockets-tcp"
LAYERS = (FAST, SLOW, "native-ofi", "rdma-ucx", "sockets-unix", "sockets-udp")
"""As many series as tell what the machine did between two campaigns, when one of them changed."""


UNKNOWN_BOOTS = say("versus", "conditions.holds_unknown")


def made(folder: Path, **options: Any) -> Campaign:  # noqa: ANN401
    usual = {
        "layers": (FAST, SLOW),
        "sizes": (8, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "launches": 14,
        "samples": 400,
        "troubles": False,
        "floors": False,
    }
    return synthetic.make(folder, synthetic.Options(**(usual | options)))


def side(campaign: Campaign, layer: str = "") -> Side:
    data = load.read(campaign)
    found = {series.label: series for series in data.layers}
    return Side(f"{campaign.campaign_id}:{layer}" if layer else campaign.campaign_id, data, found.get(layer))


def slower(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
    """Calls of one layer take three times as long; everything of the other is as it was."""
    if point["subject"]["layer"] == SLOW and point["workload"]["pattern"] == "rpc":
        synthetic.set_samples(attempt, [(60_000, 400)])


def verdicts(found: SideComparison) -> dict[tuple[str, str], set[Verdict]]:
    said: dict[tuple[str, str], set[Verdict]] = {}
    for change in found.changes:
        said.setdefault((change.series, change.case.pattern), set()).add(change.judged.verdict)
    return said


OLD, NEW = "@cadge-aaaaaaaaaa", "@cadge-bbbbbbbbbb"


def test_two_builds_are_compared_adapter_by_adapter_as_one_family(tmp_path: Path) -> None:
    """As `cadge ab` plans it: the layers of each build under their adapters' names, and the control beside itself."""

    def slow(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        if point["subject"]["layer"] == SLOW + NEW and point["workload"]["pattern"] == "rpc":
            synthetic.set_samples(attempt, [(60_000, 400)])

    layers = tuple(f"{name}{build}" for name in (FAST, SLOW) for build in (OLD, NEW))
    campaign = made(
        tmp_path, layers=layers, sweep={"baseline": OLD, "looks": [9, 14]}, twins=[FAST + OLD], attempt_hook=slow
    )
    whole = side(campaign)
    old, new = (replace(whole, name=name, variant=name) for name in (OLD, NEW))
    found = against(old, new, 0.05)
    assert {(change.series, change.case.pattern) for change in found.changes} == {
        (name, pattern) for name in (FAST, SLOW) for pattern in ("rpc", "stream")
    }
    assert len(found.changes) == 8
    assert not found.left
    assert {(one.series, one.case.pattern) for one in found.changes if one.judged.verdict is Verdict.SLOWER} >= {
        (SLOW, "rpc")
    }
    control = against(replace(old, variant=""), replace(old, variant="", again=True), 0.05)
    assert {change.series for change in control.changes} == {FAST + OLD}
    assert {one.series for one in control.left} == {FAST + NEW, SLOW + OLD, SLOW + NEW}


def test_looks_decide_each_layer_beside_itself_on_the_old_build(tmp_path: Path) -> None:
    layers = tuple(f"{name}{build}" for name in (FAST, SLOW) for build in (OLD, NEW))
    campaign = made(tmp_path, layers=layers, sweep={"baseline": OLD, "looks": [9, 14]})
    decision = decide(campaign, 2, version="1")
    points = campaign.plan.by_id
    compared = [one for family in decision.families for one in (*family.decided, *family.undecided)]
    pairs = {(points[one.point_id].subject.layer, points[one.baseline_id].subject.layer) for one in compared}
    assert pairs == {(name + NEW, name + OLD) for name in (FAST, SLOW)}
    assert len(compared) == 8
    assert decision.leading == ()


def test_a_look_decides_no_more_than_the_comparison_says(tmp_path: Path) -> None:
    """Calls alone would be decided (p about 0.03); calls and streams as one family are not, and go on."""
    order = (5, 0, 9, 3, 11, 1, 13, 7, 2, 10, 4, 12, 8, 6)  # no round is like the one before

    def near(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        new, rank = point["subject"]["layer"].endswith(NEW), order[number] + 1
        if point["workload"]["pattern"] == "rpc":
            synthetic.set_samples(attempt, [(10_000 + new * (-100 if rank == 13 else 100) * rank, 400)])
        else:
            synthetic.set_rate(attempt, 1_000_000, 100_000 + new * (-3000 if rank % 2 else 3000) * rank)

    campaign = made(
        tmp_path, layers=(FAST + OLD, FAST + NEW), sizes=(8,), sweep={"baseline": OLD, "looks": [9, 14]},
        attempt_hook=near,
    )  # fmt: skip
    data = load.read(campaign)
    alone = judge_campaign(compare(data), looks_planned(data.plan))
    assert {one.key.pattern: one.decided for one in alone.families} == {"rpc": 1, "stream": 0}
    assert [len(family.decided) for family in decide(campaign, 2, version="1").families] == [0, 0]
    whole = side(campaign)
    found = against(*(replace(whole, name=name, variant=name) for name in (OLD, NEW)), 0.05)
    assert {one.judged.verdict for one in found.changes} == {Verdict.UNKNOWN}


def test_a_campaign_beside_itself(tmp_path: Path) -> None:
    one = side(made(tmp_path))
    found = against(one, one, 0.05)
    assert found.paired
    assert found.conditions == ()
    assert found.missing == {}
    assert {change.judged.verdict for change in found.changes} == {Verdict.SAME}
    assert len(found.changes) == 2 * 2 * 2


def test_lean_sides_answer_alike(tmp_path: Path) -> None:
    """Without the bulk of their samples campaigns say of one another what they say with it."""
    campaigns = made(tmp_path / "a", layers=LAYERS), made(tmp_path / "b", layers=LAYERS, seed=8, attempt_hook=slower)
    whole = [side(one) for one in campaigns]
    lean = [Side.lean(one) for one in campaigns]
    assert all(not sample.quantities and not sample.cpu for cell in lean[0].data.cells for sample in cell.samples)
    assert document(against(*lean, 0.05)) == document(against(*whole, 0.05))
    assert document(against(lean[0], lean[0], 0.05)) == document(against(whole[0], whole[0], 0.05))
    ours, theirs = ([replace(one, series=series) for series in one.data.layers[:2]] for one in (lean[0], whole[0]))
    assert document(against(*ours, 0.05)) == document(against(*theirs, 0.05))


def test_what_became_slower_stands_first_and_backwards_it_became_faster(tmp_path: Path) -> None:
    before = side(made(tmp_path / "a", layers=LAYERS))
    after = side(made(tmp_path / "b", layers=LAYERS, seed=8, attempt_hook=slower))
    there, back = against(before, after, 0.05), against(after, before, 0.05)
    assert not there.paired
    assert {change.series for change in there.changes[:2]} == {SLOW}
    assert verdicts(there)[SLOW, "rpc"] == {Verdict.SLOWER}
    assert verdicts(back)[SLOW, "rpc"] == {Verdict.FASTER}
    assert not verdicts(there)[FAST, "rpc"] & {Verdict.SLOWER, Verdict.FASTER}
    by_cell = {(one.series, one.case.pattern, one.workload): one for one in back.changes}
    for change in there.changes:
        mirror = by_cell[change.series, change.case.pattern, change.workload]
        assert mirror.shift == change.shift.mirrored()


@pytest.mark.parametrize(
    ("first", "second", "several"),
    [({"boot": "a"}, {"boot": "a"}, 1), ({"boot": "a"}, {"boot": "b"}, 2), ({}, {"boot": "b"}, None), ({}, {}, None)],
)
def test_verdicts_hold_for_boots_that_are_recorded(
    tmp_path: Path, first: dict[str, str], second: dict[str, str], several: int | None
) -> None:
    small = {"sizes": (8,), "floors": False}
    before = side(made(tmp_path / "a", node=first, **small))
    after = side(made(tmp_path / "b", node=second, seed=8, **small))
    assert boots([before.data, after.data]) == several
    words = say("versus", "conditions.holds", boots=several) if several else UNKNOWN_BOOTS
    assert holds([before.data, after.data]) == words
    found = against(before, after, 0.05)
    assert found.holds == ("" if found.withheld else words)
    assert boots([before.data, before.data]) == 1, "one campaign is of one boot"


def test_more_is_better_where_the_pattern_says_so(tmp_path: Path) -> None:
    """Of a stream the one with more MB/s is the faster one."""
    campaign = made(tmp_path)
    found = against(side(campaign, FAST), side(campaign, SLOW), 0.05)
    assert found.paired
    for change in found.changes:
        if change.judged.verdict in (Verdict.FASTER, Verdict.SLOWER):
            is_stream = change.case.pattern == "stream"
            better = change.second > change.first if is_stream else change.second < change.first
            assert better == (change.judged.verdict is Verdict.FASTER)
    assert any(change.judged.verdict is Verdict.FASTER for change in found.changes)


def test_what_one_side_lacks_is_counted(tmp_path: Path) -> None:
    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", sizes=(8,), layers=(FAST,)))
    found = against(before, after, 0.05)
    assert found.missing == {f"not planned in {after.name}": 2 * 2 * 2 - 2}
    assert len(found.changes) == 2


def test_conditions_that_differed(tmp_path: Path) -> None:
    before = side(made(tmp_path / "a"))
    after = side(made(tmp_path / "b", seed=8, node={"cpu": {"model name": "Another One"}, "governor": "powersave"}))
    found = {one.what: one for one in against(before, after, 0.05).conditions}
    assert found["processor"].other_machine
    assert "Another One" in found["processor"].second
    assert not found["frequency governor"].other_machine
    assert next(iter(found)) == "processor"


def test_what_lasts_of_a_host_is_compared_and_what_passes_is_not(tmp_path: Path) -> None:
    device = {"index": 2, "mtu": "1500", "state": "up", "driver": "veth", "offloads": {"tso": True}}
    node = {
        "interfaces": {"data0": device},
        "memory": {"MemTotal": 9, "MemAvailable": 4},
        "hugepages": {"2M": {"reserved": "0", "free": "0"}},
    }
    other: dict[str, object] = {
        "interfaces": {"data0": device | {"index": 7, "state": "down"}},
        "memory": {"MemTotal": 9, "MemAvailable": 5},
        "hugepages": {"2M": {"reserved": "0", "free": "1"}},
    }
    before, passing = side(made(tmp_path / "a", node=node)), side(made(tmp_path / "b", seed=8, node=other))
    names = {"interfaces", "memory", "huge pages"}
    assert not names & {one.what for one in against(before, passing, 0.05).conditions}
    other["interfaces"] = {"data0": device | {"mtu": "9000", "offloads": {"tso": False}}}
    other["memory"] = {"MemTotal": 8, "MemAvailable": 4}
    found = against(before, side(made(tmp_path / "c", seed=8, node=other)), 0.05).conditions
    assert names & {one.what for one in found} == {"interfaces", "memory"}
    assert any("9000" in one.second and "1500" in one.first for one in found)


def test_a_number_that_is_not_above_zero_is_no_ratio(tmp_path: Path) -> None:
    def nothing(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        if point["workload"]["pattern"] == "stream" and point["subject"]["layer"] == SLOW:
            attempt["quantities"] = {}

    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=8, attempt_hook=nothing))
    found = against(before, after, 0.05)
    assert found.missing == {f"failed in {after.name}": 2}


@pytest.mark.parametrize("margin", [0.01, 0.5])
@pytest.mark.first(1)
def test_the_margin_decides_what_is_the_same(tmp_path: Path, margin: float) -> None:
    before, after = (side(made(tmp_path / str(seed), layers=LAYERS, seed=seed)) for seed in (7, 9))
    found = against(before, after, margin)
    same = found.count(Verdict.SAME)
    assert same == len(found.changes) if margin == 0.5 else same < len(found.changes)


# ---- layers of one campaign ----


def waning(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Calls of one layer take a little longer from launch to launch; those of the other are as they were."""
    if point["workload"]["pattern"] == "rpc":
        mine = point["subject"]["layer"] == SLOW
        synthetic.set_samples(attempt, [(10_000 * (102 + 2 * number if mine else 100) // 100, 400)])


def test_rounds_that_follow_each_other_are_not_taken_for_independent(tmp_path: Path) -> None:
    """All fourteen rounds agree, which is no news where each is like the one before."""
    campaign = made(tmp_path, attempt_hook=waning, patterns=(("rpc", 1),))
    found = against(side(campaign, FAST), side(campaign, SLOW), 0.05)
    assert all(one.shift.shift.p < 0.001 for one in found.changes)  # by the signed rank
    assert say("versus", "judging.rounds_alike") in found.withheld
    assert {one.judged.verdict for one in found.changes} == {Verdict.UNKNOWN}


def test_intervals_of_layers_are_those_that_verdicts_are_read_from(tmp_path: Path) -> None:
    campaign = made(tmp_path)
    found = against(side(campaign, FAST), side(campaign, SLOW), 0.05)
    assert not found.withheld
    assert found.changes
    for one in found.changes:
        assert one.judged.level <= 0.05
        assert one.judged.interval is not None
        low, high = one.judged.interval
        assert (low > 0 or high < 0) == (one.judged.verdict in (Verdict.FASTER, Verdict.SLOWER))


# ---- what forbids ----


def test_another_machine_is_refused_cell_by_cell(tmp_path: Path) -> None:
    before = side(made(tmp_path / "a"))
    after = side(made(tmp_path / "b", seed=8, node={"cpu": {"model name": "Another One"}}))
    found = against(before, after, 0.05)
    assert found.changes == ()
    assert len(found.left) == 8
    assert all(one.forbidden and one.why.startswith("another machine: processor") for one in found.left)
    meant = against(before, after, 0.05, across_hosts=True)
    assert len(meant.changes) == 8
    assert meant.left == ()


def test_a_new_microcode_or_kernel_is_no_other_machine(tmp_path: Path) -> None:
    cpu = {"model name": "One", "microcode": "0x1"}
    before = side(made(tmp_path / "a", node={"cpu": cpu}))
    after = side(made(tmp_path / "b", seed=8, node={"cpu": cpu | {"microcode": "0x2"}, "kernel": "7.0"}))
    found = against(before, after, 0.05)
    assert len(found.changes) == 8
    said = {one.what: (one.first, one.second, one.other_machine) for one in found.conditions}
    assert said["processor"] == ("microcode: 0x1", "microcode: 0x2", False)
    assert said["kernel"] == ("6.18.5", "7.0", False)


def test_another_parameter_of_a_pattern_is_refused_by_its_name(tmp_path: Path) -> None:
    before = side(made(tmp_path / "a", aged=True, patterns=(("rpc", 1),)))
    found = against(before, side(made(tmp_path / "b", seed=8, patterns=(("rpc", 1),))), 0.05)
    assert {one.why for one in found.left} == {say("versus", "forbidden.other_parameters", names=["touch"])}
    assert found.missing == {}


def test_other_seats_are_refused(tmp_path: Path) -> None:
    """Processes of one host against processes of two, in what is called the same place."""
    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=8))
    [key, *_] = after.cells
    seats = {one.point_id: (("client", "h1"), ("server", "h2")) for one in after.cells.values()}
    vars(after)["_hosts_of_points"] = seats
    ours, theirs = before.cells[key], after.cells[key]
    assert forbids(before, after, ours, theirs) == (
        "its processes were spread otherwise: client on h1, server on h1 in the first, client on h1, server on h2 in "
        "the second"
    )
    renamed = {point: tuple((role, f"{host}x") for role, host in found) for point, found in seats.items()}
    vars(before)["_hosts_of_points"] = renamed
    assert "spread" not in forbids(before, after, ours, theirs)


def test_launches_without_a_number_are_told_and_their_means_are_not_made(tmp_path: Path) -> None:
    def some(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if point["workload"]["pattern"] == "rpc" and point["subject"]["layer"] == SLOW:
            size = synthetic.flat(point)["size"]
            if size == 8 or number == 3:
                attempt["quantities"] = {}

    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=8, attempt_hook=some))
    found = against(before, after, 0.05)
    [told] = [one for one in found.changes if one.objections]
    assert told.objections == "second: of 14 launches 1 failed"
    means = {(one.series, one.pattern): one for one in found.wholes}
    assert means[SLOW, "rpc"].mean is None
    assert means[SLOW, "rpc"].why == say("versus", "against.cells_not_compared", left=1, every=2)
    assert means[FAST, "rpc"].mean == pytest.approx(1, abs=0.05)


def test_what_the_machine_did_stands_beside(tmp_path: Path) -> None:
    """Floors that take twice as long in the second campaign."""

    def late(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        if point["subject"]["kind"] == "floor" and "latency" in attempt["quantities"]:
            synthetic.set_samples(attempt, [(100_000, 400)])

    def early(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        if point["subject"]["kind"] == "floor" and "latency" in attempt["quantities"]:
            synthetic.set_samples(attempt, [(50_000, 400)])

    patterns = (("rpc", 1),)
    before = side(made(tmp_path / "a", floors=True, attempt_hook=early, patterns=patterns))
    after = side(made(tmp_path / "b", seed=8, floors=True, attempt_hook=late, patterns=patterns))
    [floors] = against(before, after, 0.05).moved
    assert floors.what == "floors within"
    assert floors.ratio == pytest.approx(2, rel=0.01)
    [back] = against(after, before, 0.05).moved
    assert back.log_ratio == -floors.log_ratio
    assert against(before, before, 0.05).moved == ()


# ---- sides exchanged, and one side twice ----

OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
LAUNCHES = st.lists(st.floats(0.01, 1e9), min_size=1, max_size=14)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    folder = tmp_path_factory.mktemp("two")
    few = {"layers": LAYERS, "sizes": (8,), "samples": 100}
    return tuple(side(made(folder / name, seed=seed, **few)) for name, seed in (("a", 7), ("b", 8)))  # type: ignore[return-value]


def with_numbers(one: Side, values: list[list[float]]) -> Side:
    """Return a side whose launches gave these numbers, cell by cell; cells beyond them have none."""
    other = Side(one.name, one.data, one.series)
    keys = sorted(one.numbers)
    vars(other)["numbers"] = {
        key: replace(
            one.numbers[key],
            by_round={RoundKey(number): value for number, value in enumerate(found)},
            central=over_launches(found),
        )
        for key, found in zip(keys, values, strict=False)
    }
    return other


@given(st.lists(LAUNCHES, max_size=12), st.lists(LAUNCHES, max_size=12), st.booleans(), st.floats(0.01, 0.3))
@pytest.mark.long
def test_exchanged_sides_are_the_mirror_image(
    two: tuple[Side, Side], ours: list[list[float]], theirs: list[list[float]], paired: bool, margin: float
) -> None:
    """To the last bit, whatever was measured and whichever cells have numbers; two layers of one campaign, and two."""
    sides = two
    if paired:
        one, other = (next(series for series in two[0].data.layers if series.label == name) for name in (FAST, SLOW))
        sides = replace(two[0], series=one), replace(two[0], series=other)
    first, second = with_numbers(sides[0], ours), with_numbers(sides[1], theirs)
    there, back = against(first, second, margin), against(second, first, margin)
    assert there.paired == paired

    def named(name: str) -> str:
        """Sides that are layers stand in the name, in their order."""
        return name.replace(f"{SLOW} \u2192 {FAST}", f"{FAST} \u2192 {SLOW}")

    mirrored = {named(one.name): one for one in back.changes}
    assert mirrored.keys() == {one.name for one in there.changes}
    for one in there.changes:
        other = mirrored[one.name]
        assert (other.judged.drowned, other.judged.level) == (one.judged.drowned, one.judged.level)
        assert (other.judged.interval is None) == (one.judged.interval is None)
        if one.judged.interval and other.judged.interval:
            assert one.judged.interval == tuple(-end for end in reversed(other.judged.interval))
        assert other.shift == one.shift.mirrored()
        assert other.judged.verdict is OPPOSITE.get(one.judged.verdict, one.judged.verdict)
        assert (other.judged.p, other.judged.more) == (one.judged.p, one.judged.more)
        assert (other.first, other.second) == (one.second, one.first)
    assert [one.name for one in there.left] == [named(one.name) for one in back.left]
    assert [one.cells for one in there.wholes] == [one.cells for one in back.wholes]
    for whole, same in zip(there.wholes, back.wholes, strict=True):
        assert (whole.mean is None) == (same.mean is None)
        assert whole.mean is None or same.mean is None or whole.mean * same.mean == pytest.approx(1)


@given(st.lists(LAUNCHES, min_size=8, max_size=8), st.floats(0.01, 0.3))
@pytest.mark.long
def test_a_side_beside_itself_is_never_faster_or_slower(
    two: tuple[Side, Side], values: list[list[float]], margin: float
) -> None:
    one = with_numbers(two[0], values)
    found = against(one, one, margin)
    assert found.conditions == ()
    assert {change.judged.verdict for change in found.changes} <= {Verdict.SAME, Verdict.UNKNOWN}
    # the same numbers as those of two campaigns, too
    other = with_numbers(two[1], values)
    assert {change.judged.verdict for change in against(one, other, margin).changes} <= {Verdict.SAME, Verdict.UNKNOWN}


# ---- ratios beside medians ----

FIRST = (290, 100, 146, 290, 100, 100, 290, 290, 100)
SECOND = (261, 300, 131, 261, 300, 90, 261, 261, 90)
"""Round by round 0.9 in seven of nine rounds, and 3 in two; the medians are 146 and 261."""


def in_rounds(first: Sequence[int], second: Sequence[int]) -> Callable[[dict[str, Any], dict[str, Any], int], None]:
    def hook(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        values = first if point["subject"]["layer"] == FAST else second
        synthetic.set_samples(attempt, [(values[number] * 1000, 400)])
        if not values[number]:
            attempt["quantities"] = {}

    return hook


def layers_of(folder: Path, first: Sequence[int], second: Sequence[int]) -> SideComparison:
    hook = in_rounds(first, second)
    campaign = made(folder, launches=len(first), patterns=(("rpc", 1),), sizes=(8,), attempt_hook=hook)
    return against(side(campaign, FAST), side(campaign, SLOW), 0.05)


def test_pairs_that_disagree_with_both_medians_say_so(tmp_path: Path) -> None:
    (change,) = layers_of(tmp_path / "a", FIRST, SECOND).changes
    assert (change.first, change.second) == pytest.approx((146_000, 261_000), rel=0.001)
    assert change.ratio == pytest.approx(0.9, rel=0.001)
    assert change.pairs_disagree
    (calm,) = layers_of(tmp_path / "b", FIRST, [round(0.9 * one) for one in FIRST]).changes
    assert not calm.pairs_disagree
    assert calm.second / calm.first == pytest.approx(calm.ratio, rel=0.01)


def test_medians_are_those_of_the_rounds_that_are_paired(tmp_path: Path) -> None:
    """The second side has no number in the two fast rounds of the first: beside it, these do not count."""
    first, second = (100, 100, 300, 310, 320), (0, 0, 600, 620, 640)
    (change,) = layers_of(tmp_path, first, second).changes
    assert (change.first, change.second) == pytest.approx((310_000, 620_000), rel=0.001)
    assert change.ratio == pytest.approx(2, rel=0.001)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.9, 1.1, "[0.900,\u00a01.10]"),
        (0.04, 39, "[0.0400,\u00a039.0]"),
        (1e-5, 1e6, "no bound"),
        (0.03, 31, "no bound"),
        (1.2, 1e6, "[1.20,\u00a0no bound]"),
        (1e-6, 0.5, "[no bound,\u00a00.500]"),
    ],
)
def test_an_interval_that_bounds_nothing_says_so(low: float, high: float, text: str) -> None:
    assert units.ratio_interval(low, high) == text


# ---- the machine's drift between two campaigns ----


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """Two campaigns of six layers and, between hosts, of three floors."""
    folder = tmp_path_factory.mktemp("alike")
    usual = {"layers": LAYERS, "places": ("between",), "floors": True, "patterns": (("rpc", 1),)}
    return tuple(side(made(folder / name, seed=seed, **usual)) for name, seed in (("a", 7), ("b", 8)))  # type: ignore[return-value]


def named_in(found: SideComparison) -> set[tuple[str, Verdict]]:
    return {
        (one.series, one.judged.verdict)
        for one in found.changes
        if one.judged.verdict in (Verdict.FASTER, Verdict.SLOWER)
    }


def test_what_all_series_did_is_told_and_taken_out(alike: tuple[Side, Side]) -> None:
    """A machine that is 7 % slower in the second campaign makes no layer slower; one that is slower besides is."""
    found = against(alike[0], scaled(alike[1], {"": 1.07}), 0.05)
    (machine,) = found.drift
    assert exp(machine.drift.common.value) == pytest.approx(1.07, abs=0.02)
    assert machine.drift.has_floors
    assert named_in(found) == set()
    assert all(one.change == pytest.approx(one.ratio / exp(one.shift.commons[-1])) for one in found.changes)
    assert "series moved by +7." in moved_alike(machine)
    planted = against(alike[0], scaled(alike[1], {"": 1.07, SLOW: 1.5}), 0.05)
    assert named_in(planted) == {(SLOW, Verdict.SLOWER)}
    # what the rank sum of launches alone says, as before: everything is slower
    assert all(one.shift.shift.p < 0.05 for one in found.changes)


def test_a_fourfold_slowdown_is_found_with_six_launches(tmp_path: Path) -> None:
    """Of one layer, without floors and with: the others say what the machine did, and it has no part in that itself."""
    for floors in (False, True):
        usual = {"layers": LAYERS[:5], "places": ("between",), "floors": floors, "launches": 6}
        before, after = (side(made(tmp_path / f"{seed} {floors}", seed=seed, **usual)) for seed in (7, 8))
        found = against(before, scaled(after, {SLOW: 4}), 0.05)
        assert named_in(found) == {(SLOW, Verdict.SLOWER)}
        assert all(one.judged.verdict is Verdict.SLOWER for one in found.changes if one.series == SLOW)
        plain = against(before, after, 0.05)
        freed = {
            one.name: {(of.shift.commons, of.shift.error) for of in (one, *plain.changes) if of.name == one.name}
            for one in found.changes
            if one.series == SLOW
        }
        assert all(len(drifts) == 1 for drifts in freed.values())


@pytest.mark.parametrize("times", [1.02, 1.1, 1.3])
def test_no_smaller_change_is_called_one_than_is_printed(alike: tuple[Side, Side], times: float) -> None:
    """The level of all cells falls with what is found, "the same" among it: the bound is read at that level."""
    found = against(alike[0], scaled(alike[1], {SLOW: times}), 0.05)
    (machine,) = found.drift
    named = [one for one in found.changes if one.judged.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    assert named or times < 1.3
    assert machine.least == pytest.approx(min(one.shift.beyond(one.judged.level) for one in found.changes))
    assert all(abs(one.shift.log_ratio) > machine.least for one in named)


@pytest.mark.long
def test_layers_that_all_became_slower_while_no_floor_did_are_slower(alike: tuple[Side, Side]) -> None:
    layers = dict.fromkeys(LAYERS, 1.3)
    found = against(alike[0], scaled(alike[1], layers), 0.05)
    assert {series for series, verdict in named_in(found) if verdict is Verdict.SLOWER} == set(LAYERS)
    (machine,) = found.drift
    assert machine.drift.is_apart
    assert "floors show no such drift" in moved_alike(machine)
    findings = {one.kind: one for one in findings_of(found)}
    assert findings["together"].is_serious
    assert "What they share may have changed" in findings["together"].text


def test_too_few_series_say_that_drift_is_not_known(tmp_path: Path) -> None:
    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=8, attempt_hook=slower))
    found = against(before, after, 0.05)
    assert {one.judged.verdict for one in found.changes} == {Verdict.UNKNOWN}
    assert found.drift_is_unknown
    assert "no self-test of this machine" in found.withheld


def test_the_self_test_of_this_machine_says_how_far_campaigns_lie_apart(tmp_path: Path) -> None:
    before, after = side(made(tmp_path / "a")), side(made(tmp_path / "b", seed=8, attempt_hook=slower))

    def with_pin(one: Side, between: BetweenCampaigns, **facts: Any) -> Side:  # noqa: ANN401
        pin = SelftestPin(
            selftest_id="20261121T000000Z-00000000",
            finished_utc="2026-11-21T00:30:00Z",
            version="1",
            build="0" * 64,
            machine=machine_of(one.data.nodes) | facts,
            verdict="passed",
            between=(between,),
            parts={},
            says={},
        )
        return replace(one, data=replace(one.data, meta=one.data.meta.model_copy(update={"selftest": pin})))

    of = {"place": "within", "wait": "poll", "form": "exchange"}
    steady = BetweenCampaigns(**of, common=0.01, spread=0.01, freedom=12, campaigns=4)
    found = against(before, with_pin(after, steady), 0.05)
    assert named_in(found) == {(SLOW, Verdict.SLOWER)}
    assert found.usual == (steady,)
    restless = BetweenCampaigns(**of, common=1, spread=1, freedom=12, campaigns=4)
    assert named_in(against(before, with_pin(after, restless), 0.05)) == set()
    elsewhere = against(before, with_pin(after, steady, kernel=["another"]), 0.05)
    assert elsewhere.usual == ()
    assert named_in(elsewhere) == set()


@pytest.mark.long
def test_a_place_with_few_series_is_judged_by_all_there_are(tmp_path: Path) -> None:
    """Within a host are two series, between hosts six."""

    def lacks(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
        subject = point["subject"]
        if subject["place"] == "within" and subject["layer"] not in (FAST, SLOW):
            attempt["quantities"] = {}

    usual = {"layers": LAYERS, "places": ("within", "between"), "patterns": (("rpc", 1),), "attempt_hook": lacks}
    before, after = (side(made(tmp_path / str(seed), seed=seed, **usual)) for seed in (7, 8))
    found = against(before, after, 0.05)
    groups = {one.group: one for one in found.drift}
    assert set(groups) == {(), ("between", "poll", "exchange")}
    assert groups[()].drift.series == len(LAYERS)
    assert groups[()].cells == 2 * 2
    assert not found.drift_is_unknown
    assert named_in(found) == set()
