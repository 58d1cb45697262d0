# SPDX-License-Identifier: BSD-3-Clause
"""The checker: every table cell of a report, computed again from the raw files by other means.

Raw launch records are read as plain JSON, histograms by the `hdrhistogram` package, and everything else is done with
fractions and the statistics of the standard library. Nothing of cadge_analysis is imported here.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any

import pagereader
import pytest
from arithmetic import DASH, THIN, TIMES, interval, paired_spread, ratio_spread, show, sizes_text, spread
from hdrh.histogram import HdrHistogram
from pagereader import Node

from cadge_results import Campaign

CLOSE = 5e-8  # eight digits are stored in the page


@dataclass
class Point:
    """A planned point with what the raw files say of it: a list of valid attempts with their round."""

    plan: dict[str, Any]
    launches: int = 0
    valid: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the plan says under that name
        for part in (self.plan, self.plan["subject"], self.plan["workload"], self.plan["workload"]["parameters"]):
            if name in part:
                return part[name]
        raise AttributeError(name)

    @property
    def stream(self) -> bool:
        return self.pattern in ("stream", "flow")

    @property
    def size(self) -> int:
        return int(self.request_bytes if self.pattern == "rpc" else self.bytes)

    @property
    def case(self) -> tuple[str, str, str, int]:
        return self.place, self.wait, "rate" if self.stream else "time", self.size

    @cached_property
    def medians(self) -> dict[int, float]:
        """Each round's own number: p50 in ns, or bytes over time in MB/s."""
        if self.stream:
            found = {number: one(attempt, "throughput") for number, attempt in self.valid}
            return {number: rate["amount"] * 1000 / rate["elapsed_ns"] for number, rate in found.items()}
        return {number: samples(attempt).get_value_at_percentile(50.0) for number, attempt in self.valid}

    def outcome(self) -> str:
        return next(s for s in ("valid", "unsound", "failed", "refused", "missing") if self.outcomes[s])


def one(attempt: dict[str, Any], quantity: str) -> dict[str, Any]:
    """Return the reading of the one endpoint that has any."""
    (reading,) = attempt["quantities"][quantity]
    assert isinstance(reading, dict)
    return reading


def samples(attempt: dict[str, Any]) -> HdrHistogram:
    return hdr(one(attempt, "latency")["histogram"])


@cache
def hdr(text: str) -> HdrHistogram:
    """Return a stored histogram, to be read only."""
    return HdrHistogram.decode(text)


def fine(checks: list[dict[str, Any]]) -> bool:
    return all(check["ok"] for check in checks)


def read_raw(folder: Path) -> dict[str, Point]:
    """Return every planned point with its raw attempts."""
    plan = json.loads((folder / "plan.json").read_text())
    points = {entry["point_id"]: Point(entry) for entry in plan["points"]}
    for point in points.values():
        if point.plan["state"] == "refused":
            point.outcomes["refused"] += 1
    for launch in plan["launches"]:
        path = folder / "launches" / f"{launch['launch_id']}.json"
        record = json.loads(path.read_text()) if path.exists() else None
        attempts = {a["point_id"]: a for a in record["result"]["attempts"]} if record and record["result"] else {}
        for point_id in launch["point_ids"]:
            point = points[point_id]
            point.launches += 1
            attempt = attempts.get(point_id)
            if record is None:
                point.outcomes["missing"] += 1
                continue
            point.facts = record["result"]["adapter"]
            assert attempt is not None
            sound = fine(attempt["checks"]) and fine(record["result"]["checks"]) and fine(record["crosschecks"])
            if attempt["status"] in ("refused", "failed"):
                point.outcomes[attempt["status"]] += 1
            elif attempt["status"] == "unsound" or not sound:
                point.outcomes["unsound"] += 1
            else:
                point.outcomes["valid"] += 1
                point.valid.append((launch["round"], attempt))
    return points


@dataclass(frozen=True, slots=True)
class Floor:
    """A floor at a size: a value for each round."""

    medians: dict[int, float]


COMPOSED_FROM = 65_536
REFERENCES, COPIES = {"floor-tcp", "floor-udp"}, {"floor-copyflag", "floor-futex"}


def ns_of(value: float, point_or_size: int, *, stream: bool) -> float:
    """Return the time of a message: of MB/s with its size, as both are the other way round as well."""
    return point_or_size * 1000 / value if stream else value


def floor_at(programs: list[Point], case: tuple[str, str, str, int]) -> Floor | None:
    """Return the lower envelope of all programs of that place and wait mode at that size and above."""
    place, wait, kind, size = case
    stream = kind == "rate"
    here = [p for p in programs if (p.place, p.wait) == (place, wait)]
    ours = [p for p in here if p.stream == stream]
    if not ours:
        return None
    times = {id(p): {r: ns_of(v, p.size, stream=p.stream) for r, v in p.medians.items()} for p in here}
    found = [times[id(p)] for p in ours if p.size >= size]
    bounces = min((times[id(p)] for p in here if not p.stream), key=lambda one: median(one.values()))
    copies = []
    for point in here:
        if point.layer in COPIES and (point.stream or point.size >= COMPOSED_FROM):
            moved = point.size * (1 if point.stream else 2)
            copies.append({r: (t - (0 if point.stream else bounces[r])) / moved for r, t in times[id(point)].items()})
    if copies:
        copy, at = min(copies, key=lambda one: median(one.values())), max(size, COMPOSED_FROM)
        found.append({r: at * b if stream else bounces[r] + 2 * at * b for r, b in copy.items()})
    if not found:
        return None
    values = [{r: ns_of(t, size, stream=stream) for r, t in one.items()} for one in found]
    return Floor((max if stream else min)(values, key=lambda one: median(one.values())))


def floors_of(points: dict[str, Point]) -> dict[tuple[str, str, str, int], Floor]:
    programs = [p for p in points.values() if p.kind == "floor" and p.valid]
    limits = [p for p in programs if p.layer not in REFERENCES]
    found = {case: floor_at(limits, case) for case in {p.case for p in points.values()}}
    return {case: floor for case, floor in found.items() if floor is not None}


def floor_for(point: Point, floors: dict[tuple[str, str, str, int], Floor]) -> Floor | None:
    if point.pattern == "onesided":
        return None
    if point.pattern == "rpc" and (point.depth != 1 or point.request_bytes != point.reply_bytes):
        return None
    return floors.get(point.case)


def paired(point: Point, floor: Floor) -> tuple[list[float], list[float]]:
    """Return ratios and differences, round by round; the synthetic floors are there in every round."""
    ours, base = point.medians, floor.medians
    assert set(ours) <= set(base)
    return [ours[r] / base[r] for r in sorted(ours)], [ours[r] - base[r] for r in sorted(ours)]


def to_baseline(point: Point, base: Point) -> float:
    """Return the ratio to another layer: round by round where it is there in all of ours, else of the medians."""
    ours, others = point.medians, base.medians
    if set(ours) <= set(others):
        return ratio_spread([ours[r] / others[r] for r in sorted(ours)])[0][0]
    return spread(list(ours.values()))[0][0] / spread(list(others.values()))[0][0]


def pooled_tail(point: Point, percent: float) -> tuple[list[float], int]:
    parts = [samples(attempt) for _, attempt in point.valid]
    whole = HdrHistogram(1, 100_000_000_000, 3)
    for part in parts:
        whole.add(part)
    n = whole.get_total_count()
    if n * (100 - percent) / 100 < 100 - 1e-9:
        return [], n
    own = [part.get_value_at_percentile(percent) for part in parts]
    return [whole.get_value_at_percentile(percent), min(own), max(own)], n


class Checker:
    """Compares cells and counts what it compared."""

    def __init__(self) -> None:
        self.cells = 0

    def __call__(self, cell: pagereader.Field, numbers: list[float], text: str, smalls: list[str] | None) -> None:
        self.cells += 1
        assert cell.text == text
        if smalls is not None:
            assert cell.smalls == smalls
        assert len(cell.numbers) == len(numbers)
        for shown, computed in zip(cell.numbers, numbers, strict=True):
            assert math.isclose(shown, computed, rel_tol=CLOSE, abs_tol=1e-9)

    def estimate(self, cell: pagereader.Field, values: list[float], scale: float) -> None:
        self.shown(cell, spread(values)[0], scale)

    def shown(self, cell: pagereader.Field, numbers: list[float], scale: float) -> None:
        self(cell, numbers, show(numbers[0] * scale), interval(numbers, scale))


def check_cost(check: Checker, row: pagereader.FullRow, point: Point) -> None:
    operations = sum(a["operations"] for _, a in point.valid)
    busy = [sum(a["cpu"][i]["user_ns"] + a["cpu"][i]["system_ns"] for _, a in point.valid) / operations for i in (0, 1)]
    slept = [sum(a["cpu"][i]["voluntary_switches"] for _, a in point.valid) / operations for i in (0, 1)]
    for name, value in zip(("cpu_client", "cpu_server", "cpu_all"), (*busy, sum(busy)), strict=True):
        check(row.fields[name], [value], show(value / 1000), [])
    for name, value in zip(("switches_client", "switches_server"), slept, strict=True):
        check(row.fields[name], [value], show(value), [])
    lost = sum(a["lost"] for _, a in point.valid)
    check(row.fields["lost"], [lost], f"{lost:,}".replace(",", THIN), [])
    per_second = operations * 1e9 / sum(a["elapsed_ns"] for _, a in point.valid)
    check(row.fields["rate"], [per_second], show(per_second), [])


def check_row(check: Checker, row: pagereader.FullRow, point: Point, floor: Floor | None) -> None:
    scale = 1.0 if point.stream else 0.001
    values = list(point.medians.values())
    assert (row.layer, row.label, row.wait) == (point.layer, point.layer, point.wait)
    check(row.fields["wait"], [], point.wait, [])
    check.estimate(row.fields["p50"], values, scale)
    _, coverage = spread(values)
    percent = f"{coverage * 100:.1f}{THIN}%" if coverage else "no interval"
    check(row.fields["launches"], [len(values)], str(len(values)), [percent])
    if point.stream:
        rates = [one(attempt, "throughput") for _, attempt in point.valid]
        total = sum(rate["amount"] for rate in rates) * 1000 / sum(rate["elapsed_ns"] for rate in rates)
        check(row.fields["pooled"], [total], show(total), [])
    else:
        for name, quantile, needed in (("p99", 99.0, 10_000), ("p999", 99.9, 100_000)):
            numbers, n = pooled_tail(point, quantile)
            if numbers:
                ends = f"{show(numbers[1] / 1000)}\u2026{show(numbers[2] / 1000)}"
                check(row.fields[name], numbers, show(numbers[0] / 1000), [ends])
            else:
                check(row.fields[name], [], DASH, [f"{n:,} samples; needs {needed:,}".replace(",", THIN)])
    if floor is None:
        assert row.fields["ratio"].text == row.fields["floor"].text == DASH
        assert row.fields["ratio"].smalls
    else:
        ratios, differences = paired(point, floor)
        check.shown(row.fields["ratio"], ratio_spread(ratios)[0], 1.0)
        if not point.stream:
            check.shown(row.fields["above"], paired_spread(differences)[0], 0.001)
    check_cost(check, row, point)
    done_by = point.facts["semantics"][point.operation if point.pattern == "onesided" else "message"]
    check(row.fields["work"], [], done_by, [])
    # a call that is made of messages has 16 bytes behind its request
    calls = point.facts["rpc"] if point.facts["rpc"] == "native" else "emulated, 16 B more a message"
    check(row.fields["calls"], [], calls if point.pattern == "rpc" else DASH, [])


@pytest.fixture(scope="module")
def points(campaign: Campaign) -> dict[str, Point]:
    return read_raw(campaign.path)


@pytest.fixture(scope="module")
def root(report_text: str) -> Node:
    return pagereader.read(report_text)


def test_every_cell_of_the_full_tables(points: dict[str, Point], root: Node) -> None:
    check = Checker()
    floors = floors_of(points)
    rows = pagereader.full_rows(root)
    for row in rows:
        point = points[row.point_id]
        check_row(check, row, point, floor_for(point, floors))
    measured = {pid for pid, point in points.items() if point.valid and point.kind == "layer"}
    assert {row.point_id for row in rows} == measured
    assert len(rows) == len(measured)
    assert check.cells > 12 * len(rows)


@pytest.mark.long
def test_the_checker_notices_one_changed_digit(points: dict[str, Point], root: Node) -> None:
    row = next(row for row in pagereader.full_rows(root) if points[row.point_id].kind == "layer")
    point = points[row.point_id]
    floor = floor_for(point, floors_of(points))
    check_row(Checker(), row, point, floor)
    for name in ("p50", "p99", "launches", "cpu_all", "rate", "work"):
        cell = row.fields[name]
        changed = {**row.fields, name: replace(cell, text=cell.text + "1")}
        with pytest.raises(AssertionError):
            check_row(Checker(), replace(row, fields=changed), point, floor)
        if cell.numbers:
            changed[name] = replace(cell, numbers=[cell.numbers[0] * (1 + 1e-6), *cell.numbers[1:]])
            with pytest.raises(AssertionError):
                check_row(Checker(), replace(row, fields=changed), point, floor)


def test_every_cell_of_the_summaries(points: dict[str, Point], root: Node) -> None:
    floors = floors_of(points)
    seen = 0
    for section in root.all("section"):
        pattern, _, place = section.attrs.get("id", "").partition("-")
        for table in section.all("table", class_="summary"):
            wait = {"Polling": "poll", "Blocking": "block"}[table.one("caption").text.partition(":")[0]]
            sizes = [h.text for h in table.one("thead").all("th", class_="num")]
            assert sizes == ["8 B", "4 KiB", "1 MiB"]
            has_ratios = bool(table.one("thead").all("th", class_="ratio"))
            for line in table.one("tbody").all("tr"):
                layer = line.one("th").text
                cells = line.all("td")
                ratios = cells[1::2] if has_ratios else [None] * len(cells)
                for size, cell, ratio in zip(sizes, cells[:: 2 if has_ratios else 1], ratios, strict=True):
                    (point,) = (
                        p
                        for p in points.values()
                        if (p.layer, p.pattern, p.place, p.wait) == (layer, pattern, place, wait)
                        and sizes_text(p.size) == size
                    )
                    seen += 1
                    if not point.valid:
                        assert (cell.own, cell.smalls) == (DASH, [point.outcome()])
                        continue
                    scale = 1.0 if point.stream else 0.001
                    numbers, _ = spread(list(point.medians.values()))
                    assert (cell.own, cell.smalls) == (show(numbers[0] * scale), interval(numbers, scale))
                    floor = floor_for(point, floors)
                    expected = show(ratio_spread(paired(point, floor)[0])[0][0]) + TIMES if floor else ""
                    assert (ratio.text if ratio else "") == expected
            # a layer without any number is no row, and is named at the foot with what became of its points
            foot = "".join(node.text for node in table.all("tfoot"))
            shown = {line.one("th").text for line in table.one("tbody").all("tr")}
            absent: dict[str, list[Point]] = defaultdict(list)
            for p in points.values():
                if (
                    (p.pattern, p.place, p.wait) == (pattern, place, wait)
                    and p.kind == "layer"
                    and p.layer not in shown
                    and sizes_text(p.size) in sizes
                ):
                    absent[p.layer].append(p)
            seen += sum(map(len, absent.values()))
            for layer, mine in absent.items():
                assert not any(p.valid for p in mine)
                (state,) = {p.outcome() for p in mine}
                assert layer in foot.partition(f" ({state})")[0].split("; ")[-1], "beside what became of it"
            assert bool(foot) is bool(absent)
    assert seen == 8 * 8 * 3


def test_every_number_behind_the_figures(points: dict[str, Point], root: Node) -> None:
    floors = floors_of(points)
    index: dict[tuple[str, str, str, str, str], Point] = {}
    for point in points.values():
        index[point.pattern, point.place, point.wait, point.layer, sizes_text(point.size)] = point
    cases = {key[:3] for key in index}
    seen = 0
    for figure in root.all("figure"):
        name = tuple(figure.attrs.get("id", "").removeprefix("fig-").split("-"))
        if name not in cases:
            continue  # tails, bills and strips have tests of their own
        pattern, place, wait = name
        table = figure.one("table")
        heads = [head.text.partition(",")[0] for head in table.one("thead").all("th")]
        without_floor = "floor" not in heads
        first = 1 if without_floor else 2
        layers = heads[first:]
        for line in table.one("tbody").all("tr"):
            size = line.one("th").text
            for layer, cell in zip(layers, line.all("td")[first - 1 :], strict=True):
                point = index[pattern, place, wait, layer, size]
                seen += 1
                if not point.valid:
                    assert cell.text == DASH
                    continue
                scale = 1.0 if point.stream else 0.001
                numbers, _ = spread(list(point.medians.values()))
                expected = f"{show(numbers[0] * scale)} {interval(numbers, scale)[0]}"
                floor = floor_for(point, floors)
                if floor:
                    expected += f"; {show(ratio_spread(paired(point, floor)[0])[0][0])}{TIMES}"
                base = index[pattern, place, wait, "sockets-tcp", size]  # the baseline of the sweep
                if without_floor and base.valid:
                    expected += f"; {show(to_baseline(point, base))}{TIMES}"
                assert cell.text == expected
    assert seen > 150


def test_every_floor_and_reference(points: dict[str, Point], root: Node) -> None:
    table = root.one("section", id="floors").one("table")
    rows = table.one("tbody").all("tr")
    texts = [part for row in rows for cell in row.all("td")[1:] if cell.text != DASH for part in cell.text.split("; ")]
    shown = Counter(text.partition(" ")[0] for text in texts if "a reference" not in text)
    beside = Counter(text.partition(" ")[0] for text in texts if "a reference" in text)
    expected, references = Counter[str](), Counter[str]()
    for (_, _, kind, _), floor in floors_of(points).items():
        numbers, _ = spread(list(floor.medians.values()))
        expected[show(numbers[0] * (1.0 if kind == "rate" else 0.001))] += 1
    for point in points.values():
        if point.layer in REFERENCES and point.valid:
            numbers, _ = spread(list(point.medians.values()))
            references[show(numbers[0] * (1.0 if point.stream else 0.001))] += 1
    assert (shown, beside) == (expected, references)
    assert expected
    assert references


def test_planned_points_are_the_sum_of_their_outcomes(points: dict[str, Point], root: Node) -> None:
    table = root.one("table", class_="outcomes")
    shown = {
        row.attrs["data-outcome"]: [int(cell.attrs["data-v"]) for cell in row.all("td") if "data-v" in cell.attrs]
        for row in table.one("tbody").all("tr")
    }
    by_point = Counter(point.outcome() for point in points.values())
    by_attempt: Counter[str] = Counter()
    for point in points.values():
        if point.launches:
            by_attempt.update(point.outcomes)
    assert shown == {state: [by_point[state], by_attempt[state]] for state in shown}
    totals = [cell.text.replace(THIN, "") for cell in table.one("tfoot").all("td", class_="num")]
    assert totals == [str(len(points)), str(sum(point.launches for point in points.values()))]


def test_every_reason_is_shown(points: dict[str, Point], root: Node) -> None:
    text = root.one("table", class_="reasons").text
    for point in points.values():
        if point.plan["state"] == "refused":
            assert point.plan["reason"] in text
    assert "asked for posix/memory, ran tcp/lo" in text


def test_coverage_matrix_counts_points(points: dict[str, Point], root: Node) -> None:
    groups: dict[tuple[str, str, str, str], list[Point]] = defaultdict(list)
    names = {"rpc": "RPC", "stream": "Stream"}
    waits = {"poll": "polling", "block": "blocking"}
    for point in points.values():
        if point.kind == "layer":
            groups[point.layer, names[point.pattern], point.place, waits[point.wait]].append(point)
    table = root.one("table", class_="matrix")
    columns = [(head.own, *head.smalls) for head in table.one("thead").all("th")[1:]]
    for row in table.one("tbody").all("tr"):
        for column, cell in zip(columns, row.all("td"), strict=True):
            members = groups[(row.one("th").text, *column)]
            valid = sum(bool(point.valid) for point in members)
            if valid == len(members):
                assert cell.one("span").text == str(valid)
            elif valid:
                assert cell.one("span").text == f"{valid}/{len(members)}"
            else:
                assert cell.one("span").text == members[0].outcome()
