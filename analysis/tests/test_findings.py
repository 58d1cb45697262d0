# SPDX-License-Identifier: BSD-3-Clause
"""A planted fault stands on a report's first screen, in one sentence; where none was planted, nothing does."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report
from cadge_analysis.messages import say
from cadge_analysis.page.parts.findings import NOTHING, findings, told
from cadge_analysis.report import html
from cadge_analysis.stats.attempt_columns import attempt_columns
from cadge_analysis.stats.load import Cell, Dataset, Series, Trouble, read, without_attempts
from cadge_analysis.stats.slow_hosts import slow_hosts
from cadge_analysis.stats.steered import SettingsFile, settings_files
from cadge_analysis.stats.transports import _by_checks, strayed
from cadge_analysis.versus.against import against
from cadge_analysis.versus.conditions import differences
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign, LaunchRecord

LAYERS = ("native-ucx", "rdma-ucx", "sockets-tcp")
Raw = dict[str, Any]
Plant = Callable[[Raw, random.Random], None]


def finding(key: str, **values: object) -> str:
    """Return a sentence of findings, as the catalogue has it."""
    return messages.say("findings", f"findings.{key}", **values)


def options(**given: Any) -> synthetic.Options:  # noqa: ANN401
    usual = {
        "layers": LAYERS,
        "sizes": (8,),
        "waits": ("poll",),
        "patterns": (("rpc", 1),),
        "launches": 8,
        "samples": 160,
        "floors": False,
        "troubles": False,
    }
    return synthetic.Options(**(usual | given))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return synthetic.make(tmp_path_factory.mktemp("sound"), options())


@pytest.fixture(scope="module")
def data(sound: Campaign) -> Dataset:
    return planted(sound, lambda _raw, _chance: None)


def planted(campaign: Campaign, plant: Plant) -> Dataset:
    """Return a campaign whose launches have a probe, and waits that go one way as often as the other; and a fault."""
    chance = random.Random(11)
    data, records = read(campaign), []
    for record in campaign.readings():
        raw = record.to_object()
        result = raw["result"]
        result["witness"] = [
            {
                "at": at,
                "endpoint": end,
                "line_ns": None,
                "copy_ns": 1270 * chance.uniform(0.97, 1.03),
                "clock_ns": 8 * chance.uniform(0.99, 1.01),
            }
            for at in (0, 1)
            for end in (0, 1)
        ]
        for attempt in result["attempts"]:
            for use in attempt["cpu"]:
                use |= {"wall_ns": 10_000_000, "run_wait_ns": chance.choice((0, 10_000, 3_000_000)), "stolen_ns": 0}
        plant(raw, chance)
        records.append(LaunchRecord.from_object(raw, source=record.launch_id))
    attempts = {record.launch_id: attempt_columns(record) for record in records}
    return replace(data, records=tuple(map(without_attempts, records)), attempts=attempts)


def ends_on(raw: Raw, host: str) -> list[int]:
    return [number for number, end in enumerate(raw["launch"]["endpoints"]) if end["host"] == host]


def slow_copies(raw: Raw, _: random.Random) -> None:
    """Plant a processor of h2 with half the frequency."""
    for look in raw["result"]["witness"]:
        if look["endpoint"] in ends_on(raw, "h2"):
            look["copy_ns"] *= 1.8
            look["clock_ns"] *= 1.8


def waits(raw: Raw, ends: list[int], share: float) -> None:
    for attempt in raw["result"]["attempts"]:
        for end in ends:
            attempt["cpu"][end]["run_wait_ns"] = round(share * attempt["cpu"][end]["wall_ns"])


def first_screen(data: Dataset, **given: Any) -> list[str]:  # noqa: ANN401
    """Return the sentences on the first screen: what changed since an earlier campaign, then what was found."""
    root = pagereader.read(html(report.page_of(data, **given)))
    parts = [part for part in root.one("main").children if isinstance(part, pagereader.Node)]
    told = [part.attrs.get("id", part.attrs.get("class", "")).partition(" ")[0] for part in parts]
    assert told[: told.index("answer")] == ["stops"] * ("stops" in told) + ["found"] * bool(given)
    banner = root.one("section", class_="banner")
    assert (NOTHING in banner.text) == (not findings(data))
    said = [item.text for item in root.one("section", id="found").all("li")] if given else []
    for one in banner.all("details"):
        if "data-kind" in one.attrs:
            said += [item.text for item in one.all("li")] or [f"{one.one('b').text} {one.one('p').text}"]
    return said


def serious_line(data: Dataset) -> str:
    """Return the one line above the answer, whose links lead to what they name."""
    root = pagereader.read(html(report.page_of(data)))
    [line] = root.all("p", class_="stops")
    for link in line.all("a"):
        [fold] = [one for one in root.all("details") if one.attrs.get("id") == link.attrs["href"].removeprefix("#")]
        assert fold.one("summary").one("b").text == link.text
    return line.text


def test_nothing_is_found_where_nothing_was_planted(data: Dataset) -> None:
    assert first_screen(data) == []


def test_a_load_that_wanders_is_of_no_host(sound: Campaign) -> None:
    def plant(raw: Raw, chance: random.Random) -> None:
        waits(raw, [chance.randrange(2)], 0.6)

    assert slow_hosts(planted(sound, plant)) == ()


def test_a_load_that_lasts_for_a_while_is_of_no_host(sound: Campaign) -> None:
    def plant(raw: Raw, _: random.Random) -> None:
        early = raw["result"]["started_utc"] < "2026-11-21T03:17:00"
        waits(raw, [0, 1], 0.0)
        waits(raw, ends_on(raw, "h2") if early else [], 0.6)

    assert slow_hosts(planted(sound, plant)) == ()


def test_a_layer_whose_own_threads_take_its_processor_is_no_host(sound: Campaign) -> None:
    def plant(raw: Raw, _: random.Random) -> None:
        waits(raw, [0, 1], 0.0)
        waits(raw, [1] if raw["launch"]["layer"] != "sockets-tcp" else [], 0.5)

    assert slow_hosts(planted(sound, plant)) == ()


def test_a_host_whose_copies_take_longer_is_slow(sound: Campaign) -> None:
    (slow,) = slow_hosts(planted(sound, slow_copies))
    assert (slow.host, slow.processor, slow.beside) == ("h2", None, ("h1",))
    launches = 8 * len(LAYERS)
    assert [(one.what, one.often, one.launches) for one in slow.symptoms] == [
        ("copy_ns", launches, launches),
        ("clock_ns", launches, launches),
    ]
    copy, clock = slow.symptoms
    assert (copy.others, clock.others) == (pytest.approx(1270, rel=0.02), pytest.approx(8, rel=0.01))
    assert (copy.here, copy.ratio) == (pytest.approx(1.8 * 1270, rel=0.02), pytest.approx(1.8, rel=0.03))
    assert slow.ratio == max(copy.ratio, clock.ratio)


def test_a_processor_that_waits_is_slow_beside_the_other_one(sound: Campaign) -> None:
    """Where endpoints share a host; what is a fifth of the time elsewhere is a third here."""

    def plant(raw: Raw, _: random.Random) -> None:
        within = raw["launch"]["place"] == "within"
        waits(raw, [0], 0.2)
        waits(raw, [1], 0.36 if within else 0.2)

    (slow,) = slow_hosts(planted(sound, plant))
    assert (slow.host, slow.processor, slow.beside) == ("h1", 1, ("processor 0",))
    (one,) = slow.symptoms
    assert (one.what, one.here, one.others) == ("waits", 0.36, 0.2)
    assert one.ratio == slow.ratio == pytest.approx(0.8 / 0.64)


def test_endpoints_that_the_plan_lets_share_a_processor_wait_for_each_other(sound: Campaign) -> None:
    def plant(raw: Raw, _: random.Random) -> None:
        for end in raw["launch"]["endpoints"]:
            end["cpus"] = [0]
        waits(raw, [0], 0.0)
        waits(raw, [1], 0.5)

    assert slow_hosts(planted(sound, plant)) == ()


def test_a_layer_that_goes_another_way_than_its_kind(sound: Campaign) -> None:
    def plant(raw: Raw, _: random.Random) -> None:
        raw["result"]["adapter"]["substrate"] = "same"
        if (raw["launch"]["layer"], raw["launch"]["place"]) == ("native-ucx", "within"):
            for path in raw["result"]["path"]:
                path |= {"medium": "loopback", "used": "tcp/lo"}

    unlike = finding("unlike_peers", layer="native-ucx")
    peers = finding("peers", layers=["rdma-ucx", "sockets-tcp"], medium=finding("media.memory"))
    assert first_screen(planted(sound, plant)) == [
        f"{unlike} within one host: {finding('media.loopback')}, where {peers}."
    ]


def test_a_path_that_changed(sound: Campaign) -> None:
    def plant(raw: Raw, _: random.Random) -> None:
        launch = raw["launch"]
        if (launch["layer"], launch["place"]) == ("rdma-ucx", "between") and ":13:" in raw["result"]["started_utc"]:
            for path in raw["result"]["path"]:
                path["used"] = "tcp/mgmt0"

    said = "tcp/data0 in 7; tcp/mgmt0 in 1"
    changed = finding("path_changed", where=" between hosts", said=said)
    assert first_screen(planted(sound, plant)) == [f"rdma-ucx changed its path{changed}"]
    assert serious_line(planted(sound, plant)).startswith("Caution: rdma-ucx changed its path")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A campaign in which one launch of native-ucx did not take its path."""
    return read(synthetic.make(tmp_path_factory.mktemp("unsound"), options(troubles=True, launches=4)))


def test_a_path_that_a_check_refused(whole: Dataset) -> None:
    (one,) = (way for way in strayed(whole) if way.kind == "strayed")
    assert (one.series.label, one.place) == ("native-ucx", "within")
    (said,) = (found.text for found in told(findings(whole)) if found.kind == "wrong transport")
    assert said.startswith(f"{finding('another_way', who='native-ucx')} within one host: ")
    assert "ran tcp/lo" in said
    assert said.endswith(finding("refused_attempts", where="", said="", often=f"{one.often} of {one.of} attempts")[2:])


def test_a_path_that_was_not_as_asked_is_named_with_what_was_asked(whole: Dataset) -> None:
    def changed(record: LaunchRecord) -> LaunchRecord:
        raw = record.to_object()
        if all(check["ok"] for check in raw["result"]["checks"]):
            return record
        for path in raw["result"]["path"]:
            path |= {"as_asked": False, "medium": "loopback", "asked": "memory of this host", "used": "tcp/lo"}
        return LaunchRecord.from_object(raw, source="changed")

    (said, *_) = told(findings(replace(whole, records=tuple(map(changed, whole.records)))))
    assert said.is_serious
    other = finding("asked_and_used", other="memory of this host", medium=finding("media.loopback"), said="tcp/lo")
    where = f"{finding('another_way', who='native-ucx')} within one host"
    assert said.text == finding("refused_attempts", where=where, said=other, often="1 of 4 attempts")


def test_bytes_elsewhere_are_one_sentence_for_all_layers(data: Dataset) -> None:
    def troubled(cell: Cell) -> Cell:
        if cell.series.kind != "layer" or cell.case.place != "between":
            return cell
        said = f"counters: h1: {len(cell.series.label)}000000 bytes went through mgmt0; the payload was 9 bytes"
        trouble = Trouble(state="unsound", code="UNSOUND", reason=said, attempts=2)
        return replace(cell, troubles=(trouble,))

    (said,) = told(findings(replace(data, cells=tuple(map(troubled, data.cells)))))
    counted = re.search(r"h1: \d+ bytes went through mgmt0; the payload was 9 bytes", said.text)
    assert counted is not None
    layers = ["native-ucx", "rdma-ucx", "sockets-tcp"]
    more = finding("stray_bytes", place=" between hosts", layers=layers, said=counted[0], refused="6 attempts")
    assert said.text == f"{finding('stray_title')}{more}"


def test_checks_that_failed_by_what_they_looked_at() -> None:
    """Those of paths, of bytes elsewhere, all others, then what a layer could not have; of these the most frequent."""

    def cell(layer: str, *troubles: tuple[str, str, str, int], planned: int = 8) -> SimpleNamespace:
        found = [Trouble(state=state, code=code, reason=reason, attempts=n) for state, code, reason, n in troubles]
        series, case = Series("layer", layer, (), ()), SimpleNamespace(place="within")
        return SimpleNamespace(series=series, case=case, planned=planned, troubles=found)

    said = "path: ran tcp/lo", "counters: h1: 9 bytes went through mgmt0", "payload: 1 of 8 differs"
    cells = [
        cell("a", ("unsound", "UNSOUND", said[2], 1), ("refused", "TRANSPORT", "no device", 2)),
        cell("b", ("unsound", "UNSOUND", said[2], 3), ("failed", "DEADLINE", "slow", 1)),
        cell("c", ("unsound", "UNSOUND", said[1], 1), planned=4),
        cell("c", ("unsound", "UNSOUND", said[1].replace("9", "11"), 4), ("unsound", "UNSOUND", said[0], 1)),
        cell("d", ("refused", "TRANSPORT", "no device", 0), planned=0),
    ]
    found = _by_checks(cast("Dataset", SimpleNamespace(cells=cells, records=())))
    assert [(one.kind, one.series.layer, one.said, one.often, one.of) for one in found] == [
        ("strayed", "c", said[0], 1, 12),
        ("elsewhere", "c", said[1], 5, 12),
        ("unsound", "b", said[2], 3, 8),
        ("unsound", "a", said[2], 1, 8),
        ("refused", "a", "no device", 2, 8),
    ]


# ---- since an earlier campaign ----


def slower(point: Raw, attempt: Raw, number: int) -> None:
    if point["subject"]["layer"] == "sockets-tcp" and point["subject"]["place"] == "within":
        synthetic.set_samples(attempt, [(40_000 + 100 * number, 160)])


def beside(first: Campaign, second: Dataset) -> Any:  # noqa: ANN401
    before = read(first)
    return against(Side(before.campaign_id, before), Side(second.campaign_id, second), 0.05)


MANY = (*LAYERS, "native-ofi", "sockets-udp", "sockets-unix")
"""Series enough to show what the machine did between two campaigns."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return synthetic.make(tmp_path_factory.mktemp("earlier"), options(layers=MANY))


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("later")
    changed = synthetic.make(folder, options(seed=8, layers=MANY, attempt_hook=slower, node={"kernel": "6.19.0"}))
    return planted(changed, lambda _raw, _chance: None)


def test_what_became_slower_since_is_said_first(earlier: Campaign, later: Dataset) -> None:
    compared = beside(earlier, later)
    conditions, text = first_screen(later, beside=compared)
    assert conditions == f"What differed since campaign {compared.first} besides times: kernel 6.18.5, now 6.19.0."
    assert text.startswith(f"Since campaign {compared.first} sockets-tcp, rpc of 8 B within one host, polling, is ")
    assert " slower; " in text
    assert "rdma-ucx" not in text
    assert "native-ucx" not in text


def test_backwards_nothing_is_slower(earlier: Campaign, later: Dataset, tmp_path: Path) -> None:
    before = read(earlier)
    compared = against(Side(later.campaign_id, later), Side(before.campaign_id, before), 0.05)
    (text,) = (one for one in first_screen(before, beside=compared) if one.startswith("Since campaign"))
    assert " became slower; sockets-tcp, rpc of 8 B within one host, polling, is " in text
    assert "is slower" not in text
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    for path in (one, other):
        again = against(Side(later.campaign_id, later), Side(before.campaign_id, before), 0.05)
        report.write(report.page_of(before, beside=again), path)
    assert one.read_bytes() == other.read_bytes()


DRIVER = {"file": "/opt/cadge/bin/cadge-driver", "how": "program", "build_id": "aa"}
LIBC = {"file": "/usr/lib/x86_64-linux-gnu/libc.so.6", "how": "needed", "build_id": "bb"}
LAYER = {"file": "/opt/cadge/layers/sockets-tcp.so", "how": "loaded", "build_id": "cc"}
COMPONENT = {"file": "/usr/lib/x86_64-linux-gnu/ucx/libuct_cma.so.0", "how": "loaded", "build_id": "dd"}
SPIN = {"file": "/usr/lib/x86_64-linux-gnu/libspin.so", "how": "preloaded", "sha256": "ee" * 32}
ELSEWHERE = {"file": "/home/u1/ucx/libuct_own.so", "how": "loaded", "build_id": "ff"}
INJECTED = {"file": "/tmp/x.so", "how": "mapped", "build_id": None}
USUAL = {"policy": "other", "priority": 0, "nice": 0}


def mapping(*objects: dict[str, Any], scheduling: dict[str, Any] = USUAL) -> Plant:
    """Plant what was mapped into endpoints, and how they were scheduled."""

    def plant(raw: Raw, _: random.Random) -> None:
        raw["result"]["adapter"] = (raw["result"]["adapter"] or {"name": "x", "style": "s", "substrate": "t"}) | {
            "file": LAYER["file"]
        }
        raw["result"]["objects"] = [DRIVER, LIBC, LAYER, COMPONENT, *objects]
        for end in raw["result"]["endpoints"]:
            end |= {"objects": list(range(len(raw["result"]["objects"]))), "scheduling": scheduling}

    return plant


def steered(data: Dataset) -> list[str]:
    return [found.text for found in told(findings(data)) if found.kind == "steered"]


def test_what_is_usual_is_no_finding(sound: Campaign) -> None:
    assert steered(planted(sound, mapping())) == []


@pytest.mark.parametrize("how", ["loaded", "mapped"])
def test_our_own_modules_are_ours_wherever_a_host_has_them(how: str, sound: Campaign) -> None:
    elsewhere = {**LAYER, "file": "/srv/of/another/host/layers/sockets-tcp.so", "how": how}
    assert steered(planted(sound, mapping(elsewhere))) == []


@pytest.mark.parametrize("one", [SPIN, ELSEWHERE, INJECTED])
def test_a_library_that_nobody_needs_is_on_the_first_screen(one: dict[str, Any], sound: Campaign) -> None:
    found = planted(sound, mapping(one))
    (said,) = steered(found)
    assert one["file"] in said
    assert f"{len(found.records)} of {len(found.records)} launches" in said
    assert any(one["file"] in line for line in first_screen(found))


def test_a_library_that_the_sweep_asks_for_is_a_setting(sound: Campaign) -> None:
    def plant(raw: Raw, chance: random.Random) -> None:
        mapping(SPIN)(raw, chance)
        raw["launch"]["settings"]["env.LD_PRELOAD"] = SPIN["file"]

    assert steered(planted(sound, plant)) == []


@pytest.mark.parametrize(
    ("facts", "seriousness"),
    [
        ({"bytes": 9, "sha256": "a" * 64, "lines": 1, "packaged": False}, [True]),
        ({"bytes": 9, "sha256": "a" * 64, "lines": 1, "packaged": None}, [False]),
        ({"bytes": 9, "sha256": "a" * 64, "lines": 1, "packaged": True}, []),
        ({"bytes": 9, "sha256": "a" * 64, "lines": 0, "packaged": False}, []),
        ({"bytes": 9, "sha256": "a" * 64}, []),
        ({"unknown": "Permission denied"}, []),
    ],
)
def test_a_settings_file_that_no_package_brought_is_on_the_first_screen(
    facts: dict[str, Any], seriousness: list[bool], data: Dataset
) -> None:
    nodes = tuple(node.model_copy(update={"configuration": {"/etc/ucx/ucx.conf": facts}}) for node in data.nodes)
    found = [one for one in told(findings(replace(data, nodes=nodes))) if one.kind == "steered"]
    assert [one.is_serious for one in found] == seriousness
    for one in found:
        assert "/etc/ucx/ucx.conf" in one.text
        assert all(node.host in one.text for node in nodes)


def test_settings_files_with_the_hosts_that_have_them() -> None:
    """Equal ones once; none of an older version, none without lines, none that could not be read."""

    def facts(lines: int, **more: bool | None) -> dict[str, object]:
        return {"bytes": 9, "lines": lines, **more}

    found = [
        ("h1", {"/b": facts(2, packaged=False), "/a": facts(3, packaged=True), "/e": facts(0)}),
        ("h2", {"/b": facts(2, packaged=False), "/a": facts(3, packaged=None), "/f": {"bytes": 9}}),
        ("h3", {"/b": facts(4, packaged=False), "/a": facts(3), "/d": "Permission denied"}),
        ("h4", "Permission denied"),
    ]
    nodes = [SimpleNamespace(host=host, configuration=configuration) for host, configuration in found]
    assert settings_files(cast("Dataset", SimpleNamespace(nodes=nodes))) == (
        SettingsFile(path="/a", hosts=("h2", "h3"), lines=3, packaged=None),
        SettingsFile(path="/b", hosts=("h1", "h2"), lines=2, packaged=False),
        SettingsFile(path="/b", hosts=("h3",), lines=4, packaged=False),
    )


def test_how_endpoints_were_scheduled_is_said_where_it_is_not_usual(sound: Campaign) -> None:
    (said,) = steered(planted(sound, mapping(scheduling={"policy": "fifo", "priority": 50, "nice": 0})))
    assert "fifo, priority 50" in said


def test_a_comparison_names_what_forced_either_side(data: Dataset, sound: Campaign) -> None:
    conf = {"/etc/ucx/ucx.conf": {"bytes": 9, "sha256": "a" * 64, "lines": 1, "packaged": False}}
    nodes = tuple(node.model_copy(update={"configuration": conf}) for node in data.nodes)
    other = {**COMPONENT, "build_id": "d0"}
    first = replace(planted(sound, mapping()), campaign_id="20260101T000000Z-00000000")
    second = planted(sound, mapping(SPIN, other, scheduling={"policy": "other", "priority": 0, "nice": 5}))
    told = differences(Side("a", first), Side("b", replace(second, nodes=nodes)))
    found = {one.what: (one.first, one.second) for one in told}
    assert found["scheduling"] == ("other, nice 0", "other, nice 5")
    assert found[say("versus", "conditions.forced_libraries")] == ("", f"{SPIN['file']} (preloaded)")
    assert found["mapped libraries"] == (
        "libspin.so not there, libuct_cma.so.0 dd",
        f"libspin.so {SPIN['sha256'][:12]}, libuct_cma.so.0 d0, dd",
    )
    assert "/etc/ucx/ucx.conf" in found[say("report", "provenance.configuration")][1]
