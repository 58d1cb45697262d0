# SPDX-License-Identifier: BSD-3-Clause
"""What changed since the same sweep was last measured: which campaign that is, and what is said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic
from scaled import scaled

from cadge_analysis.errors import NoDataError
from cadge_analysis.page.last_time import MARGIN, changed_since, earlier, sentence
from cadge_analysis.stats.inference.verdict import Verdict
from cadge_analysis.stats.load import read
from cadge_analysis.versus.against import SideComparison, against
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign, Store

LAYERS = ("sockets-tcp", "native-ucx", "native-ofi", "rdma-ucx")
DATE = "2026-11-21"


def made(folder: Path, seed: int, **given: Any) -> Campaign:  # noqa: ANN401
    usual: dict[str, Any] = {
        "layers": LAYERS,
        "sizes": (8, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "launches": 9,
        "samples": 200,
        "troubles": False,
        "seed": seed,
    }
    return synthetic.make(folder, synthetic.Options(**(usual | given)))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """Two campaigns that differ by chance alone."""
    found = [made(tmp_path_factory.mktemp("last"), seed) for seed in (1, 2)]
    first, second = (Side(one.campaign_id, read(one)) for one in found)
    return first, second


def counted(said: str, what: str) -> int:
    found = re.search(rf"(\d+) (?:more )?points? {what}", said)
    return int(found[1]) if found else 0


def test_what_became_faster_is_said_with_its_interval(sides: tuple[Side, Side]) -> None:
    first, second = sides
    found = against(first, scaled(second, {"native-ucx": 0.8}), MARGIN)
    moved = [one for one in found.changes if one.judged.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    assert {(one.series, one.judged.verdict) for one in moved} == {("native-ucx", Verdict.FASTER)}
    said = sentence(found, date=DATE)
    assert said.startswith(f"Against {first.name}, {DATE}: native-ucx ")
    shares = [int(number) for number in re.findall(r"faster by (\d+)", said)]
    assert len(shares) == 2
    assert all(15 <= share <= 25 for share in shares)
    said_of = {what: counted(said, what) for what in ("changed", "undecided", "the same")}
    assert said_of == {
        "changed": len(moved) - 2,
        "undecided": found.count(Verdict.UNKNOWN),
        "the same": found.count(Verdict.SAME),
    }
    assert sum(said_of.values()) + 2 == len(found.changes) == 16


def test_where_nothing_changed_nothing_is_called_so(sides: tuple[Side, Side]) -> None:
    found = against(*sides, MARGIN)
    said = sentence(found, date=DATE)
    assert "faster" not in said
    assert "slower" not in said
    undecided = found.count(Verdict.UNKNOWN)
    assert undecided + found.count(Verdict.SAME) == 16
    assert counted(said, "undecided") == undecided


def other_machine(first: Side, folder: Path) -> SideComparison:
    other = made(folder, 3, node={"cpu": {"model name": "another processor"}})
    return against(first, Side(other.campaign_id, read(other)), MARGIN)


def few_launches(_first: Side, folder: Path) -> SideComparison:
    one, two = (made(folder / str(seed), seed, launches=3) for seed in (1, 2))
    return against(Side(one.campaign_id, read(one)), Side(two.campaign_id, read(two)), MARGIN)


def other_sizes(first: Side, folder: Path) -> SideComparison:
    other = made(folder, 3, sizes=(64,))
    return against(first, Side(other.campaign_id, read(other)), MARGIN)


@pytest.mark.parametrize(
    ("compared", "why"),
    [
        (other_machine, "another machine: "),
        (few_launches, "3 launches of each are too few"),
        (other_sizes, "not planned"),
    ],
)
def test_where_nothing_can_be_said_the_reason_is(
    compared: Callable[[Side, Path], SideComparison], why: str, sides: tuple[Side, Side], tmp_path: Path
) -> None:
    said = sentence(compared(sides[0], tmp_path), date=DATE)
    assert "undecided: " in said
    assert why in said


def test_conditions_that_a_number_may_depend_on_are_named(sides: tuple[Side, Side], tmp_path: Path) -> None:
    other = made(tmp_path, 3, node={"kernel": {"release": "9.9.9"}})
    said = sentence(against(sides[0], Side(other.campaign_id, read(other)), MARGIN), date=DATE)
    assert "also changed: kernel" in said
    assert "also changed" not in sentence(against(*sides, MARGIN), date=DATE)


def changed_meta(campaign: Campaign, **changes: object) -> None:
    path = campaign.layout.meta
    raw = campaign.meta.model_copy(update={**changes, "checksum": None}).to_object()
    raw.pop("checksum", None)
    path.chmod(0o644)
    path.write_text(json.dumps(raw))


def _has_no_data(_campaign: Campaign) -> Side:
    raise NoDataError("no points")


def test_the_last_campaign_of_the_same_sweep_and_testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaigns = [made(tmp_path, seed, launches=2, floors=False) for seed in range(5)]
    for number, one in enumerate(campaigns):
        changed_meta(one, created_utc=f"2026-11-2{number}T01:00:00Z")
    first, second, third, fourth, fifth = (Campaign(one.path) for one in campaigns)
    store = Store(tmp_path)
    assert earlier(store, first) is None

    def before(campaign: Campaign) -> str | None:
        found = earlier(store, campaign)
        return found.campaign_id if found else None

    assert before(fifth) == fourth.campaign_id
    changed_meta(fourth, sweep="other")
    assert before(fifth) == third.campaign_id
    changed_meta(third, testbed=third.meta.testbed.model_copy(update={"hosts": ("h1", "h2", "h3")}))
    assert before(fifth) == second.campaign_id
    (second.path / "campaign.json").write_text("{")
    assert before(fifth) == first.campaign_id
    assert changed_since(store, fifth, read(fifth)).startswith(f"Against {first.campaign_id}, 2026-11-20: ")
    with monkeypatch.context() as patch:
        patch.setattr(Side, "lean", _has_no_data)
        assert changed_since(store, fifth, read(fifth)) == f"Not compared with {first.campaign_id}: no points."
    damaged = next(first.layout.launches.glob("*.json"))
    damaged.chmod(0o644)
    damaged.write_text("{")
    assert str(damaged) in changed_since(store, fifth, read(fifth))
    for path in first.layout.launches.glob("*.json"):
        path.unlink()
    assert before(fifth) is None
    assert changed_since(store, fifth, read(fifth)) == ""
