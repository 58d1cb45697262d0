# SPDX-License-Identifier: BSD-3-Clause
"""The model of an application beside what was measured: fitted to some points, tried on all others, taken further."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cadge_analysis import units, words
from cadge_analysis.blocks.make import line_of, row_name
from cadge_analysis.blocks.model import Region, Table, TableLine
from cadge_analysis.cells.shown import Value
from cadge_analysis.groups import by_key
from cadge_analysis.models.held_out import judged
from cadge_analysis.models.loggp import HeldOut
from cadge_analysis.stats import intervals
from cadge_analysis.stats.load import Sample, Series
from cadge_analysis.stats.offered import rate_s
from cadge_analysis.study.plugin import layer_table
from cadge_study_press.application import PERCENT, Application, AppPoint, cpu_by_round, estimate, number
from cadge_study_press.cluster import KIB, Cluster, Demands, Flow, Machine, MeasuredPoint, Throughput, fit, throughput
from cadge_study_press.flow import cluster_of
from cadge_study_press.spec import say

US = 1 / units.NS_PER_US
Subject = tuple[str, str, str, str]
"""Layer, version, place, wait mode."""
Beside = tuple[str, float, float]
NO_MODEL = say("model.no_model")
NO_LOADS = say("model.no_loads")


def machine_of(app: Application, point: AppPoint) -> Machine | None:
    """Return who computes where, from where a launch was pinned; None where it was not.

    Hosts that are emulated are one machine.
    """
    data = app.comparison.data
    names = {sample.launch_id for sample in point.cell.samples}
    record = next((one for one in data.records if one.launch_id in names), None)
    if record is None:
        return None
    together = data.meta.testbed.kind == "emulated"
    seats: list[tuple[str, set[tuple[str, int]]]] = []
    for endpoint in record.launch.endpoints:
        host = "" if together else endpoint.host
        if not endpoint.cpus or min(endpoint.cpus) < 0:
            return None
        seats.append((endpoint.role, {(host, cpu) for cpu in endpoint.cpus}))
    every = set().union(*(cpus for _, cpus in seats))
    nodes = [cpus for role, cpus in seats if role == app.spec.role]
    if sum(len(cpus) for _, cpus in seats) == len(every):
        return Machine(processors=min(map(len, nodes)), shared=False)
    return Machine(processors=len(every), shared=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedPoint:
    """A measured point, whether the model was fitted to it, and what it predicts there."""

    subject: Subject
    what: str
    """Which of its values the model was not fitted to, in words; empty where it was fitted to this point."""
    label: str
    seen: MeasuredPoint
    flow: Flow
    cpu_ns: float
    given_cpu_ns: float
    """With the misses, messages and sleeps that were measured."""
    usual_ns: float
    response_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerModel:
    """The model of one layer, or why there is none."""

    subject: Subject
    demands: Demands | str


class Models:
    """All fits of an application, and what they are worth."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self._file = app.comparison.data.patterns[app.spec.pattern]

    @cached_property
    def subjects(self) -> dict[Subject, list[tuple[AppPoint, MeasuredPoint]]]:
        """The points of each layer and version at a place, with what was seen there."""
        found: dict[Subject, list[tuple[AppPoint, MeasuredPoint]]] = defaultdict(list)
        for point in self.app.points:
            if point.server == self.app.spec.outside.own and point.numbers:
                seen = self._seen(point)
                if seen is not None:
                    found[point.cell.series.layer, point.version, *point.where].append((point, seen))
        for (layer, _, place, wait), points in found.items():
            own = {point.cell.point_id for point, _ in points}
            stand_in = self.app.lone(Series("layer", layer, (), ()), place, wait)
            points += [
                (point, seen)
                for point in stand_in
                if point.cell.point_id not in own and point.numbers and (seen := self._seen(point))
            ]
        return dict(sorted(found.items(), key=lambda one: (words.PLACE_ORDER.index(one[0][2]), one[0])))

    def _seen(self, point: AppPoint) -> MeasuredPoint | None:
        names, samples = self.app.spec.quantities, point.cell.samples
        cluster = cluster_of(self.app, point.values)
        if isinstance(cluster, str):
            return None

        def middle(quantities: Iterable[str]) -> float:
            return intervals.median([sum(number(one, name) or 0.0 for name in quantities) for one in samples])

        cpu, asker = (estimate(cpu_by_round(point.cell, role)) for role in (self.app.spec.role, self.app.spec.asker))
        if cpu is None or asker is None:
            return None
        flow = Flow(
            hit=middle((names.hits,)) / PERCENT,
            replicated=0.0,
            forwarded=middle((names.forwarded,)) / PERCENT,
            messages=middle(names.messages),
            message_bytes=middle((names.bytes,)),
        )
        return MeasuredPoint(
            cluster=cluster,
            flow=flow,
            files=middle((names.files,)),
            told=middle((names.told,)),
            sleeps=middle((names.sleeps,)),
            load=self.app.load(point.setting),
            rate_s=intervals.median([rate_s(one, names.offered) or 0.0 for one in samples]),
            cpu_ns=cpu.value,
            cpu_by_round=cpu_by_round(point.cell, self.app.spec.role),
            asker_ns=asker.value,
            usual_ns=point.numbers.central.value if point.numbers else 0.0,
            response_ns=intervals.median([_mean(one, self._file.main) for one in samples]),
            machine=machine_of(self.app, point),
        )

    def _is_fitted_to(self, point: AppPoint) -> bool:
        values, names = point.values, self.app.spec.parameters
        free = (names.connections, names.load, names.rate)
        is_usual = self.app.load(point.setting) == self.app.load(self.app.main)
        return any(
            all(values[name] == value for name, value in given.items())
            and all(
                name in (*given, *free) or self._file.parameters[name].default == value for name, value in point.setting
            )
            for given in (self.app.spec.fit if is_usual else self.app.spec.fit_loads)
        )

    @cached_property
    def fits(self) -> tuple[LayerModel, ...]:
        """Every fit."""
        found = []
        for subject, points in self.subjects.items():
            if not any(self.app.nodes(one) > 1 for one, _ in points):
                continue
            mine = [seen for one, seen in points if self._is_fitted_to(one)]
            found.append(LayerModel(subject=subject, demands=fit(mine, self.app.spec.micro.head_bytes)))
        return tuple(found)

    @cached_property
    def cases(self) -> tuple[PredictedPoint, ...]:
        """Every point of a layer that has a model."""
        found = []
        for one in self.fits:
            if isinstance(one.demands, str):
                continue
            fitted = [point for point, _ in self.subjects[one.subject] if self._is_fitted_to(point)]
            for point, seen in self.subjects[one.subject]:
                if (point.cell.series.layer, *point.where) != (one.subject[0], *one.subject[2:]):
                    continue  # stands in for the layer's own, and is tried there
                flow = one.demands.flow(seen.cluster)
                found.append(
                    PredictedPoint(
                        subject=one.subject,
                        what="" if point in fitted else self._new(point, fitted),
                        label=self.app.setting_text(point.setting),
                        seen=seen,
                        flow=flow,
                        cpu_ns=one.demands.cpu_ns(seen.cluster, flow, seen.rate_s),
                        given_cpu_ns=one.demands.given_ns(seen),
                        usual_ns=one.demands.usual_ns(seen.cluster, flow, seen.machine, seen.rate_s),
                        response_ns=one.demands.response_ns(seen.cluster, flow, seen.machine, seen.rate_s),
                    )
                )
        return tuple(found)

    def _new(self, point: AppPoint, fitted: Sequence[AppPoint]) -> str:
        """Return which values of a point the model has not seen."""
        names = self.app.spec.parameters
        # a single node has the cache and the connections of all
        free = (names.cache_kib, names.connections)
        apart = [
            name
            for name, value in point.setting
            if name not in free and value not in {one.values[name] for one in fitted}
        ]
        return " and ".join(self._file.parameters[name].title for name in apart) or say("model.combinations")


def _mean(sample: Sample, quantity: str) -> float:
    """Return the mean of a histogram; its buckets are a thousandth wide."""
    counts = sample.quantities[quantity].counts
    return sum(high * often for _, high, often in counts) / counts.total


# ---- sections ----


def sections(app: Application, models: Models) -> tuple[Region, Region]:
    """Return the model's sections."""
    return _model(app, models), _further(app, models)


def _name(subject: Subject, several: bool) -> tuple[str, str]:
    layer, version, place, wait = subject
    return layer, f"{words.PLACES[place]}, {words.WAITS[wait]}" + (f", {version}" if several else "")


def _several(models: Models) -> bool:
    return len({subject[1] for subject in models.subjects}) > 1


def _us(value_ns: float) -> Value:
    if value_ns == float("inf"):
        return Value(text="no end", detail=say("model.overload"))
    return Value(text=units.us(value_ns), raw=f"{value_ns:.12g}")


def _model(app: Application, models: Models) -> Region:
    held = [one for one in models.cases if one.what]
    tables = [_demands(models)]
    if held:
        tables.append(_held_out(held))
    return app.part(
        "model",
        filter(None, (_stations(models), judgement(models))),
        tuple(tables),
        more=(_every(models),) if models.cases else (),
    )


def _stations(models: Models) -> str:
    machines = {seen.machine for points in models.subjects.values() for _, seen in points if seen.machine}
    if not machines:
        return say("model.not_pinned")
    said = [
        say("model.one_station", n=one.processors) if one.shared else say("model.station_each", n=one.processors)
        for one in sorted(machines, key=lambda one: (not one.shared, one.processors))
    ]
    apart = f" {say('model.with_room', said=said[1])}" if len(said) > 1 else ""
    return say("model.stations", said=said[0], apart=apart)


def _demands(models: Models) -> Table:
    rows, refused = [], defaultdict[tuple[str, str], list[str]](list)
    for one in models.fits:
        label, detail = _name(one.subject, _several(models))
        if isinstance(one.demands, str):
            refused[one.demands, label].append(detail)
            continue
        found = one.demands
        cache = max(seen.cluster.cache_bytes for _, seen in models.subjects[one.subject] if seen.cluster.nodes > 1)
        rounds = list(found.by_round.values())
        every = [_fitted_cost(cost, [costs[at] for costs in rounds]) for at, cost in enumerate(found.costs)]
        if not found.slept:
            every[-1] = Value(text=units.MISSING, reason=say("model.one_load"))
        cells = (
            *every,
            Value(text=units.sig3(found.replicas * cache / KIB), raw=f"{found.replicas:.12g}"),
            _us(found.asker_ns),
            _us(found.pause_ns),
            _us(found.forward_pause_ns),
            Value(text=str(found.points), detail=found.unknown),
        )
        rows.append(line_of(row_name(label, detail), cells))
    for (why, label), details in refused.items():
        rows.append(line_of(row_name(label, "; ".join(details)), (), why))
    return layer_table(
        "What was fitted, \u00b5s",
        (
            "a request",
            "a miss",
            "a message",
            "a KiB of messages",
            "a sleep",
            say("model.copies"),
            "the client",
            "pause of a request",
            "of a forwarded one",
            "points",
        ),
        tuple(rows),
        wide=True,
    )


def _fitted_cost(cost_ns: float, by_round: Sequence[float]) -> Value:
    """Return a cost, with the interval over fits to one round each."""
    value = _us(cost_ns)
    if len(by_round) < 2:
        return value
    own = intervals.over_launches(by_round)
    ends = units.interval(units.us(own.low or 0.0), units.us(own.high or 0.0))
    return Value(text=value.text, detail=ends, raw=value.raw)


def _cpu(one: PredictedPoint) -> Beside:
    return _at(one), one.cpu_ns, one.seen.cpu_ns


def _given(one: PredictedPoint) -> Beside:
    return _at(one), one.given_cpu_ns, one.seen.cpu_ns


def _usual(one: PredictedPoint) -> Beside | None:
    return (_at(one), one.usual_ns, one.seen.usual_ns) if one.usual_ns != float("inf") else None


def _response(one: PredictedPoint) -> Beside | None:
    return (_at(one), one.response_ns, one.seen.response_ns) if one.response_ns != float("inf") else None


def _at(one: PredictedPoint) -> str:
    return f"{one.subject[0]} {words.PLACES_SHORT[one.subject[2]]}, {one.label}"


def _error(found: HeldOut | None) -> tuple[Value, Value]:
    if found is None:
        none = Value(text=units.MISSING, reason=say("model.all_overload"))
        return none, none
    median = Value(text=units.percent(found.median_error, 0), raw=f"{found.median_error:.12g}")
    sign = "+" if found.worst_error >= 0 else units.MINUS
    worst = Value(
        text=f"{sign}{units.percent(abs(found.worst_error), 0)}",
        detail=found.worst_at,
        raw=f"{found.worst_error:.12g}",
    )
    return median, worst


def _row(what: str, detail: str, cases: Sequence[PredictedPoint]) -> TableLine:
    found = [_error(judged(what, map(of, cases))) for of in (_cpu, _usual, _response)]
    cells = (Value(text=str(len(cases)), raw=str(len(cases))), *(cell for pair in found for cell in pair))
    return line_of(row_name(what, detail), cells)


def _held_out(held: Sequence[PredictedPoint]) -> Table:
    by_what = by_key(held, lambda one: one.what)
    rows = [_row(what, "", by_what[what]) for what in sorted(by_what)]
    rows.append(_row("all of them", "", held))
    given = judged("", map(_given, held))
    blank = Value(text=units.MISSING, reason="as above")
    rows.append(
        line_of(
            row_name("all of them", say("model.costs_alone")),
            (Value(text=str(len(held)), raw=str(len(held))), *_error(given), *[blank] * 4),
        )
    )
    return layer_table(
        say("model.held_out"),
        (
            "points",
            "processors, median error",
            "at worst",
            say("model.p50_error"),
            "at worst",
            say("model.mean_error"),
            "at worst",
        ),
        tuple(rows),
        head=say("model.new"),
        wide=True,
    )


def judgement(models: Models) -> str:
    """Return how well the model predicts points that it was not fitted to."""
    held = [one for one in models.cases if one.what]
    cpu = judged("", map(_cpu, held))
    if cpu is None:
        return say("model.no_point_left")
    said = [say("model.is_off", points=cpu.points, off=_off(cpu))]
    for key, of in (("p50", _usual), ("mean", _response)):
        found = judged("", map(of, held))
        said += [say(f"model.also_off.{key}", off=_off(found))] if found else []
    return f"{'; '.join(said)}."


def _off(found: HeldOut) -> str:
    return say("model.errors", median=found.median_error, worst=abs(found.worst_error))


def _every(models: Models) -> Table:
    def both(predicted: Value, measured: Value) -> Value:
        return Value(text=f"{predicted.text} | {measured.text}", raw=f"{predicted.raw} {measured.raw}")

    def share(value: float) -> Value:
        return Value(text=f"{value * PERCENT:.0f}{units.THIN}%", raw=f"{value:.12g}")

    rows = []
    for one in models.cases:
        cells = (
            both(share(one.flow.hit), share(one.seen.flow.hit)),
            both(share(one.flow.forwarded), share(one.seen.flow.forwarded)),
            both(
                Value(text=units.sig3(one.flow.messages), raw=f"{one.flow.messages:.12g}"),
                Value(text=units.sig3(one.seen.flow.messages), raw=f"{one.seen.flow.messages:.12g}"),
            ),
            both(_us(one.cpu_ns), _us(one.seen.cpu_ns)),
            both(_us(one.usual_ns), _us(one.seen.usual_ns)),
            both(_us(one.response_ns), _us(one.seen.response_ns)),
        )
        label, detail = _name(one.subject, _several(models))
        fitted = f"new: {one.what}" if one.what else "fitted to it"
        rows.append(line_of(row_name(label, f"{detail}; {one.label}; {fitted}"), cells))
    return layer_table(
        say("model.every"),
        ("hits", "forwarded", "messages", "processors, \u00b5s", "p50, \u00b5s", "mean, \u00b5s"),
        tuple(rows),
        wide=True,
    )


# ---- more nodes, other machines ----


def _further(app: Application, models: Models) -> Region:
    spec = app.spec.scale
    held = judged("", map(_cpu, (one for one in models.cases if one.what)))
    # at one load a sleep is in the other costs, and where a station has no time left nobody sleeps
    ready = [one for one in models.fits if isinstance(one.demands, Demands) and one.demands.slept]
    one_load = any(isinstance(one.demands, Demands) and not one.demands.slept for one in models.fits)
    tables = []
    generations = (
        (say("model.as_they_are"), 1, 1),
        (say("model.next_generation", faster=spec.faster, memory=spec.memory), spec.faster, spec.memory),
    )
    for place in words.PLACE_ORDER:
        here = [one for one in ready if one.subject[2] == place]
        base = next((one for one in here if one.subject[0] == app.spec.base), None)
        if base is None or not isinstance(base.demands, Demands):
            continue
        for title, faster, memory in generations:
            rows = [_scaled(app, models, one, base.demands, faster, memory) for one in here]
            tables.append(
                layer_table(
                    f"{title}, {words.PLACES[place]}",
                    tuple(f"{units.grouped(count)} nodes" for count in spec.nodes),
                    tuple(rows),
                    wide=True,
                )
            )
    said = [say("model.further", off=_off(held))] if held is not None and tables else []
    return app.part("further", tuple(said) if tables else (NO_LOADS if one_load else NO_MODEL,), tuple(tables))


def _scaled(app: Application, models: Models, one: LayerModel, base: Demands, faster: int, memory: int) -> TableLine:
    spec = app.spec.scale
    label, detail = _name(one.subject, _several(models))
    held = app.comparison.why_not(app.spec.pattern, *one.subject[2:])
    cells = []
    for count in spec.nodes:
        cluster = _cluster(app, count, memory)
        if isinstance(cluster, str) or isinstance(one.demands, str):
            cells.append(Value(text=units.MISSING, reason=cluster if isinstance(cluster, str) else str(one.demands)))
            continue
        cells.append(gain(one.demands, base, cluster, float(spec.processors), faster, withheld=held))
    return line_of(row_name(label, detail), tuple(cells))


def gain(
    demands: Demands, base: Demands, cluster: Cluster, processors: float, faster: float, *, withheld: str = ""
) -> Value:
    """Return the gain over the base, with the interval over fits to one round each; unmarked where that is withheld."""
    flow, other = demands.flow(cluster), base.flow(cluster)

    def rates(ours: Demands, theirs: Demands) -> tuple[Throughput, Throughput]:
        return (
            throughput(ours, flow, cluster, processors=processors, faster=faster),
            throughput(theirs, other, cluster, processors=processors, faster=faster),
        )

    rounds = [
        rates(demands.of_round(demands.by_round[key]), base.of_round(base.by_round[key]))
        for key in demands.by_round
        if key in base.by_round
    ] or [rates(demands, base)]
    # a round alone may have found that nothing but misses and sleeps costs anything: then there is no limit
    rounds = [pair for pair in rounds if all(one.rate_s < float("inf") for one in pair)]
    if not rounds:
        return Value(text=units.MISSING, reason=say("model.no_limit"))
    rate = intervals.median([ours.rate_s for ours, _ in rounds])
    limits = [ours.limit for ours, _ in rounds]
    said = f"{units.sig3(rate)}/s, by {max(sorted(set(limits)), key=limits.count)}"
    if demands is base:
        return Value(text="the base", detail=said, raw="0")
    gained = intervals.over_launches([ours.rate_s / theirs.rate_s - 1 for ours, theirs in rounds])
    if gained.low is None or gained.high is None:
        return Value(text=_signed(gained.value), detail=said, raw=f"{gained.value:.12g}")
    ends = units.interval(_signed(gained.low), _signed(gained.high))
    flag = "" if withheld else "differs" if gained.low > 0 or gained.high < 0 else "same"
    return Value(text=_signed(gained.value), detail=f"{ends} {said}", raw=f"{gained.value:.12g}", flag=flag)


def _signed(share: float) -> str:
    rounded = round(share * PERCENT)
    sign = "+" if rounded > 0 else units.MINUS if rounded < 0 else ""
    return f"{sign}{abs(rounded)}{units.THIN}%"


def _cluster(app: Application, count: int, memory: int) -> Cluster | str:
    """Return a cluster of so many nodes: its working set is of the memory of today."""
    names = app.spec.parameters
    file = app.comparison.data.patterns[app.spec.pattern]
    usual = {name: one.default for name, one in file.parameters.items() if one.default is not None}
    values = usual | dict(app.main) | dict(app.spec.scale.given) | {names.nodes: count}
    found = cluster_of(app, values)
    if isinstance(found, str):
        return found
    return Cluster(
        nodes=found.nodes,
        cache_bytes=found.cache_bytes * memory,
        site=found.site,
        disk_ns=found.disk_ns,
        disks=found.disks,
    )
