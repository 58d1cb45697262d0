# SPDX-License-Identifier: BSD-3-Clause
"""Campaigns, comparisons and histories whose outputs the golden set keeps: each a function of an empty folder.

Real campaigns stand in archives beside this file; the others are made from a seed, with troubles planted. Where a test
has a campaign of the kind, it is that one.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))  # the helpers of tests

import ablated
import figured
import over_time
import synthetic
import test_baseline_report
import test_beside
import test_beside_native
import test_bill_figure
import test_campaign_verdicts
import test_findings
import test_gate
import test_kinds
import test_knee_report
import test_last_time
import test_machine_probe
import test_natives
import test_one_load
import test_pairs_disagree
import test_ranks
import test_service_report
import test_strips
import test_tail_verdicts
import test_versions
import test_versus
import test_why
from scaled import scaled

from cadge_analysis import report
from cadge_analysis.blocks.bars import ascii_text, lines
from cadge_analysis.models.campaign import fits_of
from cadge_analysis.page import beside, last_time, pages, paper
from cadge_analysis.page import history as history_page
from cadge_analysis.page.parts import ablation_table
from cadge_analysis.page.ranked import pictured
from cadge_analysis.pairs.matrix import matrices
from cadge_analysis.pairs.section import sentences
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.load import Cell, Dataset, Trouble, read
from cadge_analysis.study.views import page_of
from cadge_analysis.versus.against import SideComparison, against
from cadge_analysis.versus.as_data import document
from cadge_analysis.versus.history import history
from cadge_analysis.versus.history_data import document as history_document
from cadge_analysis.versus.sides import Side
from cadge_results import Campaign, LaunchRecord, PatternFile, Store
from cadge_results.formats.campaign import Redaction
from golden.outputs import Figures, Outputs, as_json, of_exports, of_page, of_tables, repr_of

Scene = Callable[[Path], Outputs]
SCENES: dict[str, Scene] = {}
STUDIES = Path(__file__).parents[2] / "studies"
HERE = Path(__file__).parent


def scene(make: Scene) -> Scene:
    """Register a scene by its function's name."""
    SCENES[make.__name__] = make
    return make


def reported(data: Dataset, **given: Any) -> Outputs:  # noqa: ANN401
    """Return the report of a campaign in all editions, and its figures."""
    with Figures() as figures:
        return of_page(report.page_of(data, **given), kinds=("text", "markdown")) | {"figures": figures.text()}


def whole(campaign: Campaign) -> Outputs:
    """Return the report and the exports of a campaign."""
    return reported(read(campaign)) | dict(of_exports(campaign))


def small(folder: Path, **given: Any) -> Campaign:  # noqa: ANN401
    """Make a campaign of two layers and two sizes."""
    usual: dict[str, Any] = {
        "layers": ("sockets-tcp", "native-ucx"),
        "sizes": (8, 4096),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1),),
        "launches": 6,
        "samples": 200,
        "troubles": False,
    }
    return synthetic.make(folder, synthetic.Options(**(usual | given)))


def unpacked(name: str, folder: Path) -> Campaign:
    """Unpack a stored campaign."""
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read() if content else b"")
    (found,) = folder.iterdir()
    return Campaign(found)


# ---- real campaigns ----


@scene
def tour(folder: Path) -> Outputs:
    """A little of every pattern, measured over three layers within one host."""
    campaign = unpacked("tour", folder)
    made = ascii_text("\n".join(lines(pictured(compare(read(campaign))), most=40)))
    return whole(campaign) | dict(of_tables(campaign)) | {"picture": made, "loggp": fits_of(read(campaign)).to_json()}


# ---- reports ----


@scene
def everything(folder: Path) -> Outputs:
    """Eight layers, both places and wait modes, with refused, failed and unsound attempts, and a second series."""
    options = synthetic.Options(sizes=(8, 1048576), samples=160, twins=("native-ofi",), launches=5)
    return whole(synthetic.make(folder, options))


@scene
def mixed(folder: Path) -> Outputs:
    """A pattern with a baseline among its own choices."""
    return whole(test_baseline_report.campaign(folder))


@scene
def load_(folder: Path) -> Outputs:
    """Knees, with the p99.9."""
    return whole(test_knee_report.campaign(folder, hooked=figured._many))


@scene
def knee_unmeasured(folder: Path) -> Outputs:
    """Knees whose p99 stands on few samples."""
    return whole(test_knee_report.campaign(folder, hooked=test_knee_report.few_samples))


@scene
def bursts(folder: Path) -> Outputs:
    """Models fitted to bursts."""
    return whole(figured._bursts(folder))


@scene
def pairs(folder: Path) -> Outputs:
    """Two numbers of pairs, times to connect, memory, and imported results."""
    return reported(figured._pairs(folder))


LAYERS_OF_PAIRS = {"sockets-tcp": 1.0, "native-ucx": 1.2}
HOSTS = ("h1", "h2", "h3", "h4", "h5")


def slow_pairs(point: dict[str, Any], attempt: dict[str, Any], _: int) -> None:
    """Plant over pairs: h2 is a slow sender of streams, h4 loses packets, h5 and h1 reach each other one way alone."""
    known, subject = synthetic.flat(point), point["subject"]
    first, second = subject["settings"]["hosts.pair"].split(",")
    times = LAYERS_OF_PAIRS[subject["layer"]] * (1 + HOSTS.index(first) / 100 + HOSTS.index(second) / 200)
    if (first, second) == ("h5", "h1"):
        synthetic._spoil(attempt, "DEADLINE", "no progress for 3000 ms")
    elif known["pattern"] == "stream":
        synthetic.set_rate(attempt, 1500 * 50_000, round(50_000_000 * times * (3 if first == "h2" else 1)))
    else:
        loses = "h4" in (first, second)
        calls, waits_ns = (40, 200_000_000) if loses else (5000, 0)
        value = round(8000 * times)
        synthetic.set_samples(attempt, [(value, calls), *[(waits_ns, 1)] * loses])
        attempt |= {"operations": calls + loses, "elapsed_ns": calls * value + waits_ns}


@scene
def pairs_of_hosts(folder: Path) -> Outputs:
    """Pairs of hosts, of which some are slow, lose packets or give nothing: `cadge health`'s answer, and the report."""
    every = [{"hosts.pair": f"{first},{second}"} for first in HOSTS for second in HOSTS if first != second]
    options = synthetic.Options(
        layers=tuple(LAYERS_OF_PAIRS), sizes=(8,), places=("between",), waits=("poll",), floors=False, troubles=False,
        patterns=(("rpc", 1), ("stream", 16)), launches=2, samples=160, settings=every, attempt_hook=slow_pairs,
    )  # fmt: skip
    data = read(synthetic.make(folder, options))
    testbed = data.meta.testbed.model_copy(update={"hosts": HOSTS})
    plan = data.plan.model_copy(update={"sweep": data.plan.sweep | {"title": "Hosts or links that are slower"}})
    data = replace(data, meta=data.meta.model_copy(update={"testbed": testbed}), plan=plan)
    found = matrices(data)
    values = "\n".join(f"{one.values}\n{one.means}\n{one.missing}" for one in found)
    return reported(data) | {"matrices": values, "health": "\n".join(sentences(found))}


@scene
def shares(folder: Path) -> Outputs:
    """Launches that were offered a share of what the layer can do."""
    return whole(test_one_load.made(folder, lambda layer, number: 1000 if layer == "sockets-tcp" else 2000 + number))


@scene
def tails(folder: Path) -> Outputs:
    """Layers that differ in the tail alone, one of them measured twice with another tail."""
    return whole(test_tail_verdicts.made(folder, test_tail_verdicts.world(twin_tail=3.0)))


@scene
def known_differences(folder: Path) -> Outputs:
    """Layers that differ by what is known, in rounds that drift."""
    return whole(test_campaign_verdicts.made(folder))


@scene
def native(folder: Path) -> Outputs:
    """A layer that lies off a plain program."""
    return whole(test_beside_native.made(folder))


@scene
def ranks(folder: Path) -> Outputs:
    """Points with untouched data, which rank nothing."""
    options = test_ranks.options(touches=("none", "write+read"), attempt_hook=test_ranks.untouched_wins)
    return whole(synthetic.make(folder, options))


@scene
def disturbed(folder: Path) -> Outputs:
    """Half of the launches were disturbed, so that verdicts are withheld."""
    return whole(test_gate.made(folder, disturbed=7))


@scene
def pairs_disagree(folder: Path) -> Outputs:
    """The ratio of the medians contradicts the median of the ratios."""
    second = [2 * one for one in test_pairs_disagree.FIRST[::-1]]
    return whole(test_pairs_disagree.of_layers(folder, second))


@scene
def strips(folder: Path) -> Outputs:
    """A launch in which everything took longer, others cut short, and failed attempts."""
    return whole(synthetic.make(folder, test_strips.OPTIONS))


def many_troubles(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Plant a trouble of each kind: two groups, warm-up, few operations, lost messages, a floor that is beaten."""
    known = synthetic.flat(point)
    if known["kind"] == "floor":
        synthetic.set_samples(attempt, [(4000, 2000)])
        return
    if known["pattern"] != "rpc":
        return
    attempt["warmup"]["steady"] = known["size"] != 4096
    if known["layer"] == "native-ucx":
        synthetic.set_samples(attempt, [(9_000 if number % 2 else 3_500, 4000)])
        attempt |= {"lost": 4, "late": 2}
    elif known["size"] == 8:
        synthetic.set_samples(attempt, [(10_000 + 10 * number, 40)])
        attempt["operations"] = 40
    elif known["size"] == 64:
        synthetic.set_samples(attempt, [(6_000, 2000), (19_000, 2000)])
    for one in attempt["cpu"]:
        one |= {"wall_ns": 25_000_000, "run_wait_ns": 9_000_000 if number == 1 else 0, "stolen_ns": 2_000_000}


@scene
def troubled(folder: Path) -> Outputs:
    """Two groups of launches and of operations, short warm-ups, few operations, losses, beaten floors."""
    made = small(
        folder,
        layers=("sockets-tcp", "native-ucx", "sockets-udp"),
        sizes=(8, 64, 4096),
        patterns=(("rpc", 1), ("stream", 16)),
        launches=9,
        attempt_hook=many_troubles,
        clock_step_ns=40.0,
        node={"programs": {"nginx": {"version": "1.22.1-9", "path": "/usr/sbin/nginx"}}},
    )
    return whole(made) | dict(of_tables(made))


@scene
def built(folder: Path) -> Outputs:
    """Two builds of a library."""
    options = synthetic.Options(
        layers=("sockets-tcp", test_versions.NEW, "native-ucx"), sizes=(8, 65536), waits=("poll",), launches=12,
        samples=100, troubles=False,
    )  # fmt: skip
    found = read(synthetic.make(folder, options))
    plan = found.plan.model_copy(update={"providers": {test_versions.NEW: test_versions.PROVIDER}})
    return reported(replace(found, plan=plan))


@scene
def slow_host(folder: Path) -> Outputs:
    """A slow host, a way that changed, and one that is not of its kind."""

    def plant(raw: dict[str, Any], chance: Any) -> None:  # noqa: ANN401
        test_findings.slow_copies(raw, chance)
        launch = raw["launch"]
        if launch["place"] == "between" and launch["layer"] == "rdma-ucx" and ":13:" in raw["result"]["started_utc"]:
            for path in raw["result"]["path"]:
                path["used"] = "tcp/mgmt0"
        if (launch["layer"], launch["place"]) == ("native-ucx", "within"):
            raw["result"]["adapter"]["substrate"] = "same"
            for path in raw["result"]["path"]:
                path |= {"medium": "loopback", "used": "tcp/lo"}

    campaign = synthetic.make(folder, test_findings.options())
    return reported(test_findings.planted(campaign, plant))


@scene
def steered(folder: Path) -> Outputs:
    """A preloaded library, one from elsewhere, and another scheduling."""
    own = (test_findings.SPIN, test_findings.ELSEWHERE, test_findings.INJECTED)
    plant = test_findings.mapping(*own, scheduling={"policy": "fifo", "priority": 10, "nice": -5})
    campaign = synthetic.make(folder, test_findings.options())
    return reported(test_findings.planted(campaign, plant))


@scene
def strayed(folder: Path) -> Outputs:
    """A launch that went another way than asked."""
    data = read(synthetic.make(folder, test_findings.options(troubles=True, launches=4)))

    def changed(record: LaunchRecord) -> LaunchRecord:
        raw = record.to_object()
        if all(check["ok"] for check in raw["result"]["checks"]):
            return record
        for path in raw["result"]["path"]:
            path |= {"as_asked": False, "medium": "loopback", "asked": "memory of this host", "used": "tcp/lo"}
        return LaunchRecord.from_object(raw, source="changed")

    return reported(replace(data, records=tuple(map(changed, data.records))))


@scene
def probed(folder: Path) -> Outputs:
    """Machine probes that drift with the launches."""
    data = read(small(folder, launches=9))
    return reported(test_machine_probe.told(data, line=lambda record: 100.0 * (1 + int(record.launch.seed) % 5)))


@scene
def service(folder: Path) -> Outputs:
    """Handlers that work, sleep and touch."""
    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"), sizes=(0, 1000, 10_000, 100_000), places=("within",), waits=("poll",),
        patterns=(("handler", 1),), given=({}, {"work": "sleep"}, {"work": "touch", "work_bytes": 65536}), floors=False,
        troubles=False, attempt_hook=test_service_report.by_hand,
    )  # fmt: skip
    return whole(synthetic.make(folder, options))


@scene
def empty(folder: Path) -> Outputs:
    """Nothing was measured."""
    return whole(small(folder, status="interrupted", lost=lambda _: True))


@scene
def all_failed(folder: Path) -> Outputs:
    """No attempt has a number."""

    def fail(_: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        synthetic._spoil(attempt, "DEADLINE", "no progress for 3000 ms" if number else "the library ended")

    return whole(small(folder, attempt_hook=fail))


@scene
def unfinished(folder: Path) -> Outputs:
    """An interrupted campaign, of which launches are missing."""
    return whole(small(folder, status="interrupted", drop_launches=5, sizes=(8,)))


@scene
def two_launches(folder: Path) -> Outputs:
    """Too few launches to decide."""
    return whole(small(folder, launches=2, patterns=(("rpc", 1), ("stream", 64))))


@scene
def one_of_all(folder: Path) -> Outputs:
    """One launch of one layer, without floors, on no virtual machine."""
    return whole(small(folder, layers=("sockets-tcp",), launches=1, floors=False, virtual=False, sizes=(8, 64)))


@scene
def to_itself(folder: Path) -> Outputs:
    """A process with itself, no bytes, several operations in flight, one-sided ones."""
    return whole(
        small(
            folder, layers=("rdma-ucx", "null-self"), sizes=(0, 1, 8, 65536), places=("self", "within"), launches=2,
            patterns=(("pingpong", 1), ("rpc", 8), ("onesided", 1)),
        )
    )  # fmt: skip


@scene
def hostile(folder: Path) -> Outputs:
    """A layer whose name is markup."""
    name = "<b class=x>&amp;|`*_"

    def spoil(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if number == 1 and point["subject"]["kind"] == "layer":
            attempt |= {"status": "failed", "reason": name, "reason_code": "LIBRARY", "checks": []}

    return reported(read(small(folder, layers=(name,), attempt_hook=spoil)), title=name)


@scene
def another_baseline(folder: Path) -> Outputs:
    """A baseline that somebody chose."""
    return reported(read(small(folder, launches=9)), baseline="native-ucx")


@scene
def parted(folder: Path) -> Outputs:
    """A report in several files."""
    with Figures():
        page = report.page_of(read(small(folder, launches=3, patterns=(("rpc", 1), ("stream", 64)), troubles=True)))
        main, others = pages.split(page, "report.html", len(report.html(page).encode()))
        made = others | {"report.html": main}
        return {name: text for file, one in made.items() for name, text in of_page(one, file).items()}


@scene
def reopened(folder: Path) -> Outputs:
    """A report that was made of another one."""
    with Figures():
        text = report.html(report.page_of(read(small(folder, launches=9, twins=("native-ucx",)))))
    return of_page(report.page_again(text, "report.html", "native-ucx"))


# ---- what is told of a campaign beside its numbers ----


@scene
def noted(folder: Path) -> Outputs:
    """Problems and notes of others, repeated launches, looks, a changed tool, a redacted copy, no host's facts."""
    data = read(small(folder, launches=9, twins=("native-ucx",)))
    again = {
        why: frozenset(record.launch_id for record in data.records[at : at + 2])
        for at, why in enumerate(("failed", "damaged", "disturbed", "alone"))
    }
    redaction = Redaction(
        replaced={"hosts": 3, "paths": 1}, kept=("hardware",), withheld={"native-ucx": "its licence says so"},
        original_sha256="ab" * 32, original_plan_hash="cd" * 32,
    )  # fmt: skip
    meta = data.meta.model_copy(
        update={
            "problems": ("the host went away", "a disk was full"),
            "tool": data.meta.tool.model_copy(update={"dirty": True}),
            "redacted": redaction,
            "notices": (),
        }
    )
    plan = data.plan.model_copy(update={"notices": ("1 MiB was left out", "one layer has no build")})
    several = reported(replace(data, meta=meta, plan=plan, made_again=again, nodes=()))
    meta = meta.model_copy(update={"problems": meta.problems[:1]})
    one = replace(data, meta=meta, plan=plan.model_copy(update={"notices": plan.notices[:1]}))
    records = tuple(stolen(record, number) for number, record in enumerate(data.records))
    less = replace(one, records=records, plan=one.plan.model_copy(update={"sweep": {}}))
    return named(several=several, one=reported(one), no_baseline=reported(less))


def named(**several: Outputs) -> Outputs:
    """Return the outputs of several pages, each name with its page before it."""
    return {f"{page}.{name}": text for page, made in several.items() for name, text in made.items()}


def stolen(record: LaunchRecord, number: int) -> LaunchRecord:
    """Return a record of a launch that the hypervisor and a quota took time from, now and then with another library."""
    raw = record.to_object()
    for load_ in raw["load"]:
        load_ |= {"steal_ns": 90_000_000, "throttled_ns": 60_000_000}
    if number % 3 == 0:
        raw["result"]["library"]["stated_version"] = "9.9"
    if number % 3 == 1:
        for path in raw["result"]["path"]:
            path |= {"medium": "unknown", "used": "not told"}
    return LaunchRecord.from_object(raw, source="stolen")


@scene
def looked(folder: Path) -> Outputs:
    """A campaign with looks."""
    data = read(
        test_campaign_verdicts.made(
            folder, sweep={"baseline": "sockets-tcp", "looks": [6, 9, 12]}, twins=("sockets-tcp",)
        )
    )
    return reported(data)


@scene
def many_layers(folder: Path) -> Outputs:
    """More layers than one picture can tell apart, with settings and shims; none of them ranks at depth 8."""
    layers = ("sockets-tcp", "native-ucx", *(f"am-made{number}" for number in range(9)))
    options = {"layers": layers, "launches": 4, "patterns": (("rpc", 1), ("rpc", 8)), "sizes": (8, 64, 4096)}
    return reported(read(small(folder, **options)))


@scene
def settings(folder: Path) -> Outputs:
    """One layer with two settings, whose launches fall far apart."""

    def apart(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        known = synthetic.flat(point)
        if known["kind"] == "layer" and known["pattern"] == "rpc":
            synthetic.set_samples(attempt, [((3000, 3000, 3100, 9000, 9100, 9200)[number], 200)])
        if known["kind"] == "layer" and known["size"] == 4096 and number > 1:
            synthetic._spoil(attempt, "DEADLINE", "no progress for 3000 ms")

    tuned = ({}, {"tcp.nodelay": "off"}, {"tcp.nodelay": "off", "tcp.buffer": "4MiB"})
    return whole(small(folder, settings=tuned, attempt_hook=apart, layers=("sockets-tcp",)))


@scene
def checks(folder: Path) -> Outputs:
    """Attempts that a check of their own refused, and bytes that went elsewhere."""

    def refused(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if point["subject"]["layer"] == "native-ucx" and number < 3:
            attempt["checks"] = [{"name": "executions", "ok": False, "detail": "3 calls were carried out twice"}]

    data = read(small(folder, attempt_hook=refused, places=("within", "between")))

    def troubled(cell: Cell) -> Cell:
        if cell.series.kind != "layer" or cell.case.place != "between":
            return cell
        said = "counters: h1: 7000000 bytes went through mgmt0; the payload was 9 bytes"
        return replace(cell, troubles=(Trouble(state="unsound", code="UNSOUND", reason=said, attempts=2),))

    return named(checks=reported(data), elsewhere=reported(replace(data, cells=tuple(map(troubled, data.cells)))))


@scene
def neighbours(folder: Path) -> Outputs:
    """A busy processor, a busy host, and settings files of the system."""
    campaign = synthetic.make(folder, test_findings.options())

    def busy(raw: dict[str, Any], _: Any) -> None:  # noqa: ANN401
        test_findings.waits(raw, [1] if raw["launch"]["place"] == "within" else [], 0.5)

    def busier(raw: dict[str, Any], _: Any) -> None:  # noqa: ANN401
        test_findings.waits(raw, test_findings.ends_on(raw, "h2"), 0.5)

    return named(
        processor=reported(test_findings.planted(campaign, busy)),
        host=reported(test_findings.planted(campaign, busier)),
    )


@scene
def crowd(folder: Path) -> Outputs:
    """A pattern with counts, ranges and a caveat of its own."""
    known = synthetic.WORKLOADS
    file = PatternFile.from_object(test_kinds.CROWD, source="crowd")
    with patch.object(synthetic, "WORKLOADS", replace(known, patterns={**known.patterns, "crowd": file})):
        options = synthetic.Options(
            layers=("sockets-tcp", "rdma-ucx"), sizes=(1, 2, 8), places=("within",), waits=("poll",),
            patterns=(("crowd", 1),), floors=False, troubles=False, attempt_hook=test_kinds.by_hand,
        )  # fmt: skip
        return whole(synthetic.make(folder, options))


@scene
def bills(folder: Path) -> Outputs:
    """What a call between hosts is made of."""
    options = synthetic.Options(
        layers=tuple(test_bill_figure.LAYER_NS), sizes=(8, 4096), places=("between",), waits=("poll",),
        patterns=(("rpc", 1),), launches=5, troubles=False, attempt_hook=test_bill_figure._set,
    )  # fmt: skip
    return reported(read(synthetic.make(folder, options)))


# ---- further ways to look at campaigns ----


@scene
def figures_alone(folder: Path) -> Outputs:
    """The figures of a report and the numbers of each."""
    with Figures():
        page = report.page_of(read(small(folder, launches=9)))
    found = tuple(paper.shown(page))
    return {one.figure.name: "\n".join((one.heading, paper._numbers(one.figure).decode())) for one in found}


@scene
def cells_beside(folder: Path) -> Outputs:
    """Two cells side by side: of two layers, of two sizes, of two campaigns."""

    def counted(_: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        attempt["counters"] = [{"copies": attempt["operations"] * (1 + number % 2)}, {}]
        attempt["counted_operations"] = 100

    tcp, ucx, far = "sockets-tcp, rpc, 8 B", "native-ucx, rpc, 8 B", "native-ucx, rpc, 16KiB"
    first = test_why.made(folder / "a", attempt_hook=counted)
    libraries = {"libucp.so.0": {"version": "1.14"}, "libfabric.so.1": {"version": "1"}}
    later = test_why.made(folder / "b", seed=8, node={"libraries": libraries, "thp": "never"})
    beside_ = {"layers": (first, tcp, first, ucx), "sizes": (first, ucx, first, far), "days": (first, ucx, later, ucx)}
    return {name: repr(test_why.between(*four)).replace("Aspect(", "\nAspect(") for name, four in beside_.items()}


@scene
def tools(folder: Path) -> Outputs:
    """Native tools beside a campaign."""
    campaign = test_natives.made(folder)
    cells = [test_natives.cell(campaign, "pingpong", size) for size in (8, 65536)]
    cells += [test_natives.cell(campaign, "stream", 65536, "rate"), test_natives.cell(campaign, "msgrate", 8, "rate")]
    cells.append(test_natives.cell(campaign, "pingpong", 8, "mean"))
    waited = [(), (1,), (), (), (0, 4)]
    found = [one for of, rounds in zip(cells, waited, strict=True) for one in test_natives.readings(of, rounds)]
    few, much = (test_natives.readings(cells[0])[:5], test_natives.readings(cells[0], (0, 1)))
    rows = [row for read in (found, few, much) for row in test_natives.rows(campaign, cells, read)]
    said = (f"{one.does}: {one.says} {one.slower} {one.short} {one.pairs_disagree}\n{one!r}" for one in rows)
    return {"rows": "\n".join(said)}


@scene
def since_last_time(folder: Path) -> Outputs:
    """The sentence that a run ends with, of campaigns that differ, do not, and cannot be compared."""
    first, second = (test_last_time.made(folder / str(seed), seed) for seed in (1, 2))
    sides = test_versus.side(first), test_versus.side(second)
    nothing = {
        "other_machine": test_last_time.other_machine(sides[0], folder / "m"),
        "few_launches": test_last_time.few_launches(sides[0], folder / "f"),
        "other_sizes": test_last_time.other_sizes(sides[0], folder / "s"),
        "alike": against(*sides, 0.05),
        "faster": against(sides[0], scaled(sides[1], {"native-ucx": 0.8}), 0.05),
        "slower": against(sides[0], scaled(sides[1], {"native-ucx": 1.3, "rdma-ucx": 2.0}), 0.05),
        "together": against(sides[0], scaled(sides[1], {"": 1.4}), 0.05),
    }
    told = {name: last_time.sentence(found, date="2026-11-21") for name, found in nothing.items()}
    store = Store(folder / "days")
    days = [test_last_time.made(store.root, seed, launches=4) for seed in range(3)]
    for day, one in enumerate(days):
        test_last_time.changed_meta(one, created_utc=f"2026-11-2{day}T01:00:00Z")
    at_first, _, last = (Campaign(one.path) for one in days)
    told["first"] = last_time.changed_since(store, at_first, read(at_first))
    told["third"] = last_time.changed_since(store, last, read(last))
    (days[1].path / "campaign.json").write_text("{")
    told["after_a_damaged_one"] = last_time.changed_since(store, last, read(last))
    return told


# ---- comparisons ----


def compared(found: SideComparison, first: Side, second: Side, **given: Any) -> Outputs:  # noqa: ANN401
    """Return the page of a comparison, and what programs get."""
    with Figures() as figures:
        made = of_page(beside.page(found, first, second, generated="then", **given)) | {"figures": figures.text()}
    return made | {"json": as_json(document(found)), "changes": repr_of(found)}


@scene
def compare_changed(folder: Path) -> Outputs:
    """One layer slower, one with a longer tail, one that fails at a size, another kernel."""
    first = test_beside.side(folder / "a", attempt_hook=test_beside.level, samples=1000)
    later = test_beside.side(
        folder / "b", seed=8, attempt_hook=test_beside.planted, node={"kernel": "7.0"}, samples=1000
    )
    second = scaled(later, {test_beside.SLOW: 3.0})
    return compared(against(first, second, 0.05), first, second)


@scene
def compare_layers(folder: Path) -> Outputs:
    """Two layers of one campaign, paired."""
    campaign = small(folder, launches=9, patterns=(("rpc", 1), ("stream", 64)))
    first, second = test_versus.side(campaign, "sockets-tcp"), test_versus.side(campaign, "native-ucx")
    return compared(against(first, second, 0.05), first, second)


@scene
def compare_machines(folder: Path) -> Outputs:
    """Another machine: nothing is compared, or machines are."""
    first = test_versus.side(small(folder / "a", launches=9))
    second = test_versus.side(
        small(folder / "b", launches=9, seed=9, node={"cpu": {"model name": "another"}}, sizes=(8, 64))
    )
    refused = against(first, second, 0.05)
    across = against(first, second, 0.05, across_hosts=True)
    return {
        f"{name}.{part}": text
        for name, found in (("refused", refused), ("across", across))
        for part, text in compared(found, first, second).items()
    }


@scene
def since(folder: Path) -> Outputs:
    """A report beside an earlier campaign: what became slower, and the other way round."""
    first = test_versus.side(synthetic.make(folder / "a", test_findings.options(layers=test_findings.MANY)))
    changed = test_findings.options(
        seed=8, layers=test_findings.MANY, attempt_hook=test_findings.slower, node={"kernel": "6.19.0"}
    )
    second = test_versus.side(synthetic.make(folder / "b", changed))
    forth = reported(second.data, beside=against(first, second, 0.05))
    back = reported(first.data, beside=against(second, first, 0.05))
    return {f"{way}.{name}": text for way, made in (("forth", forth), ("back", back)) for name, text in made.items()}


@scene
def since_another_machine(folder: Path) -> Outputs:
    """A report beside a campaign of another machine."""
    first = test_versus.side(small(folder / "a", launches=9))
    second = test_versus.side(small(folder / "b", launches=9, seed=9, node={"cpu": {"model name": "another"}}))
    return reported(second.data, beside=against(first, second, 0.05))


@scene
def compare_moved(folder: Path) -> Outputs:
    """Layers moved and floors did not; floors and layers moved; withheld, varied, and many changes."""
    given = {"launches": 9, "layers": test_versus.LAYERS, "sizes": (8, 64), "patterns": (("rpc", 1), ("stream", 64))}
    first = test_versus.side(small(folder / "a", **given))
    second = test_versus.side(small(folder / "b", seed=9, node={"kernel": "7.0", "thp": "never"}, **given))
    layers = {one.label: 1.5 for one in second.data.layers}
    found = {}
    for name, moved in (("layers", scaled(second, layers)), ("all", scaled(second, {"": 1.5}))):
        told = against(first, moved, 0.05)
        found |= named(**{name: compared(told, first, moved, vary=("kernel",))})
        found |= named(**{f"report_{name}": reported(second.data, beside=told)})
    return found


@scene
def over_days(folder: Path) -> Outputs:
    """Twelve campaigns, of which one layer became slower with another kernel."""
    before = over_time.read(folder / "a")
    after = over_time.read(folder / "b", replace(over_time.OPTIONS, node={"kernel": "7.0"}))
    found = history(over_time.sides(before, after), 0.05)
    with Figures() as figures:
        html = of_page(history_page.page(found, generated="then"))
        return html | {"figures": figures.text(), "json": as_json(history_document(found))}


@scene
def over_days_with_troubles(folder: Path) -> Outputs:
    """Histories whose floors changed too, where layers came and went, of another machine, with too few campaigns."""
    before = over_time.read(folder / "a")
    after = over_time.read(folder / "b", replace(over_time.OPTIONS, node={"kernel": "7.0", "thp": "never"}))
    fewer = over_time.read(folder / "c", replace(over_time.OPTIONS, layers=("sockets-tcp", "rdma-ucx")))
    cpu = {"cpu": {"model": "Other 9000", "sockets": 1, "cores": 2}}
    other = over_time.read(folder / "d", replace(over_time.OPTIONS, node=cpu))
    sides = {
        "floors": [over_time.at(after if n >= 6 else before, n, {"": 2.0} if n >= 6 else {}) for n in range(12)],
        "some": [*over_time.sides(before, after, count=3), over_time.at(fewer, 3, {})],
        "machine": [over_time.at(before, 0, {}), over_time.at(before, 1, {}), over_time.at(other, 2, {})],
        "still": over_time.sides(before, before, slower=1.0),
    }
    found = {name: history(several, 0.05) for name, several in sides.items()}
    with Figures():
        shown = {name: of_page(history_page.page(one, generated="then")) for name, one in found.items()}
    return named(**{name: shown[name] | {"json": as_json(history_document(one))} for name, one in found.items()})


# ---- studies, ablations ----


@scene
def ablation(folder: Path) -> Outputs:
    """Optimisations switched off."""
    found = ablation_table.answer(ablated.make(folder))
    told = "\n".join(
        "\n".join((one.title, *("\t".join(row) for row in one.rows), *one.remarks)) for one in found.tables
    )
    return {"text": f"{told}\n{found.note}", "json": as_json(found.data)}


def studied(campaigns: list[Campaign], name: str) -> Outputs:
    """Return the page of a study."""
    with Figures() as figures:
        return of_page(page_of(campaigns, STUDIES / name), name) | {f"{name}.figures": figures.text()}


@scene
def studies(folder: Path) -> Outputs:
    """Every study beside a campaign with a little of everything."""
    campaign = unpacked("tour", folder / "tour")
    found: Outputs = {}
    for path in sorted(STUDIES.glob("*/published.yml")):
        found |= studied([campaign], path.parent.name)
    return found
