# SPDX-License-Identifier: BSD-3-Clause
"""An application on the layers: processors' time a request, what of it is communication, the price of a forwarded one.

All of it launch by launch. Communication is what a cluster takes more than one node does whose cache holds what all of
theirs hold, in the same round; the price is that, divided by the share of requests that were forwarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cadge_analysis import units, words
from cadge_analysis.blocks.make import listed, plain
from cadge_analysis.blocks.model import Fold, Region, Span, Table
from cadge_analysis.groups import by_key
from cadge_analysis.stats import intervals
from cadge_analysis.stats.ablation import reason
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.inference.rounds import RoundKey
from cadge_analysis.stats.intervals import Estimate
from cadge_analysis.stats.load import Cell, Sample, Series
from cadge_analysis.stats.numbers import Numbers
from cadge_analysis.study.plugin import ParameterValue as Value
from cadge_analysis.study.plugin import titled
from cadge_study_press.load import OfferedRequests, given_rate, offered
from cadge_study_press.spec import ApplicationOf, Sections, say

Setting = tuple[tuple[str, Value], ...]
"""Values of all parameters but the version and whose servers run."""
ByRound = Mapping[RoundKey, float]
PERCENT = 100.0
NO_ALONE = say("application.no_alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPoint:
    """One cell of the application: which version of it, whose servers, and in which setting.

    `withheld`: why its numbers cannot stand beside those of its setting; it has none then.
    """

    cell: Cell
    numbers: Numbers | None
    version: str
    server: str
    setting: Setting
    offered: OfferedRequests | None
    withheld: str = ""

    @property
    def where(self) -> tuple[str, str]:
        """Place and wait mode."""
        return self.cell.case.place, self.cell.case.wait

    @property
    def values(self) -> dict[str, Value]:
        """The setting by name."""
        return dict(self.setting)

    @property
    def why(self) -> str:
        """Why it has no number."""
        return self.withheld or reason(self.cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleNode:
    """One node that holds everything: what a request takes there. `from_`: whose it is, if not the layer's own."""

    by_round: ByRound
    from_: str
    connections: int


def number(sample: Sample, quantity: str) -> float | None:
    """Return what a launch has of a quantity that is a number."""
    found = sample.quantities.get(quantity)
    return intervals.median(found.numbers) if found is not None and found.numbers else None


def cpu_by_round(cell: Cell, role: str = "") -> ByRound:
    """Return the processors' time a request in ns, of all endpoints of a role, or of all."""
    return {
        sample.round: sum(use.user_ns + use.system_ns for name, use in sample.cpu if role in ("", name))
        / sample.operations
        for sample in cell.samples
        if sample.cpu and sample.operations
    }


def quantity_by_round(cell: Cell, quantity: str) -> ByRound:
    """Return a quantity that is a number, launch by launch."""
    found = {sample.round: number(sample, quantity) for sample in cell.samples}
    return {key: value for key, value in found.items() if value is not None}


def estimate(by_round: ByRound) -> Estimate | None:
    """Return the median over launches with its interval; None without any."""
    return intervals.over_rounds(by_round, paired=True) if by_round else None


def divided(ours: ByRound, base: ByRound) -> ByRound:
    """Return ours \u00f7 base, for rounds that have both."""
    return {key: value / base[key] for key, value in ours.items() if base.get(key)}


def less(ours: ByRound, base: ByRound) -> ByRound:
    """Return ours - base, for rounds that have both."""
    return {key: value - base[key] for key, value in ours.items() if key in base}


class Application:
    """All points of a campaign that are the application's, and what follows from them."""

    def __init__(self, comparison: Comparison, spec: ApplicationOf, layers: str) -> None:
        self.comparison, self.spec, self.layers = comparison, spec, layers

    def part(
        self, name: Sections, said: Iterable[str], tables: Iterable[Table] = (), *, more: Iterable[Table] = ()
    ) -> Region:
        """Return a section of the page: what it says of itself, sentences, and tables; `more` are folded."""
        found, sentences = self.spec.sections[name], tuple(said)
        folds = (Fold(summary=(Span(table.label),), blocks=(table,)) for table in more)
        note = [plain(found.note)] if found.note else []
        told = [listed(sentences, "said")] if sentences else []
        return Region(id=name, title=found.title, blocks=(*note, *told, *titled(*tables), *folds))

    @cached_property
    def every(self) -> tuple[AppPoint, ...]:
        """Every point, shims and settings included; those at another load than their setting's have no numbers."""
        found = self._measured()
        groups = by_key(found, lambda one: (one.where, one.setting))
        measure = {key: self._load_of(points) for key, points in groups.items()}
        return tuple(self._at_load(one, measure[one.where, one.setting]) for one in found)

    def _load_of(self, points: Sequence[AppPoint]) -> AppPoint | None:
        """Return the point at whose load a setting is compared: the base layer's, where it has one load."""
        first = next(iter(self.spec.versions.values))

        def order(point: AppPoint) -> tuple[bool, bool, bool, str, str]:
            label, is_ours = point.cell.series.label, point.server == self.spec.outside.own
            return not is_ours, label != self.spec.base, point.version != first, label, point.version

        known = [one for one in points if one.offered and not one.offered.refused(self.spec.one_load)]
        return min(known, key=order, default=None)

    def _at_load(self, point: AppPoint, of: AppPoint | None) -> AppPoint:
        if point.numbers is None:
            return point
        if point.offered is None:
            return replace(point, numbers=None, withheld=say("application.offered_unknown"))
        why = point.offered.refused(self.spec.one_load)
        if not why and of is not None and of.offered is not None:
            name = of.cell.series.label if of.server == self.spec.outside.own else of.server
            why = point.offered.apart(of.offered, name, self.spec.one_load)
        return replace(point, numbers=None, withheld=why) if why else point

    def _measured(self) -> tuple[AppPoint, ...]:
        numbers = {row.cell.point_id: row.numbers for row in self.comparison.rows}
        spec, found = self.spec, []
        apart = {spec.versions.parameter, spec.outside.parameter}
        for cell in self.comparison.data.cells:
            if cell.series.kind != "layer" or cell.case.pattern != spec.pattern:
                continue
            values = cell.case.workload.values
            found.append(
                AppPoint(
                    cell=cell,
                    numbers=numbers.get(cell.point_id),
                    version=str(values.get(spec.versions.parameter, next(iter(spec.versions.values)))),
                    server=str(values.get(spec.outside.parameter, spec.outside.own)),
                    setting=tuple(sorted((name, value) for name, value in values.items() if name not in apart)),
                    offered=offered(cell, spec),
                )
            )
        return tuple(found)

    @cached_property
    def points(self) -> tuple[AppPoint, ...]:
        """Points of layers as they are, without shims and settings."""
        return tuple(one for one in self.every if not one.cell.series.shims and not one.cell.series.settings)

    @property
    def clustered(self) -> tuple[AppPoint, ...]:
        """Points of several nodes."""
        return tuple(one for one in self.points if self.nodes(one) > 1)

    def nodes(self, point: AppPoint) -> int:
        """Return how many nodes share the work."""
        return int(point.values[self.spec.parameters.nodes])

    @cached_property
    def main(self) -> Setting:
        """The values, without the axis, that most settings of several nodes have in common."""
        axis = self.spec.parameters.working_percent
        sizes: dict[Setting, set[Value]] = {}
        for point in self.clustered:
            shared = tuple(one for one in point.setting if one[0] != axis)
            sizes.setdefault(shared, set()).add(point.values[axis])
        file = self.comparison.data.patterns.get(self.spec.pattern)

        def rank(shared: Setting) -> tuple[int, int]:
            usual = sum(file.parameters[name].default == value for name, value in shared) if file else 0
            return len(sizes[shared]), usual

        return max(sizes, key=rank) if sizes else ()

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Settings of several nodes: first those of the main family, then all others, each kind in order."""
        main, axis = set(self.main), self.spec.parameters.working_percent

        def order(setting: Setting) -> tuple[object, ...]:
            other = [name for name, value in setting if (name, value) not in main and name != axis]
            values = dict(setting)
            return len(other), other, *(str(values[name]).rjust(12) for name in other), values[axis]

        return tuple(sorted({one.setting for one in self.clustered}, key=order))

    def is_main(self, setting: Setting) -> bool:
        """Tell whether a setting is one of the main family."""
        return set(self.main) <= set(setting)

    def at_main(self) -> Setting | None:
        """Return the setting at which layers are ranked: that of the main family nearest to what the study says."""
        mine = [one for one in self.settings if self.is_main(one)]
        axis = self.spec.parameters.working_percent
        return min(mine, key=lambda one: abs(int(dict(one)[axis]) - self.spec.at)) if mine else None

    def setting_text(self, setting: Setting) -> str:
        """Return how a setting differs from the main family, or where on the axis it stands."""
        axis, file = self.spec.parameters.working_percent, self.comparison.data.patterns[self.spec.pattern]
        values, names = dict(setting), self.spec.parameters
        is_one = values[names.nodes] == 1
        said = [say("application.one_node")] if is_one else []
        for name, value in setting:
            if is_one and name in (names.nodes, names.cache_kib, names.connections):
                continue
            if name != axis and (name, value) not in self.main:
                one = file.parameters[name]
                said.append(one.say.replace("{title}", one.title).replace("{value}", words.value(one, value)))
        size = f"{units.grouped(int(values[axis]))}{units.THIN}%"
        return ", ".join((*said, f"working set {size}")) if said else size

    def main_text(self) -> str:
        """Return the values that the main family has in common and that are worth saying."""
        values, names = dict(self.main), self.spec.parameters
        if not values:
            return ""
        rate = given_rate(values, self.spec)
        load = (
            say("application.rate", rate=round(rate))
            if rate
            else say("application.share_of_closed_loop", percent=values[names.load])
        )
        return say(
            "application.main",
            nodes=values[names.nodes],
            kib=values[names.cache_kib],
            files=values[names.files],
            alpha=float(values[names.alpha_percent]) / PERCENT,
            load=load,
        )

    def load(self, setting: Setting) -> tuple[Value, float]:
        """Return which load a setting has: the share of a closed loop, or the rate that was given."""
        values = dict(setting)
        rate = given_rate(values, self.spec)
        return (0, rate) if rate else (values[self.spec.parameters.load], 0.0)

    def lone(self, series: Series, place: str, wait: str, server: str = "") -> Iterator[AppPoint]:
        """Yield the points of a single node that stand for a layer at a place: its own, or those of the base layer.

        A single node speaks to nobody, so that any layer's, and one within a host, does for all. `server`: whose it is,
        if it is none of ours.
        """
        base = Series("layer", self.spec.base, (), ())
        mine = [
            one
            for one in self.points
            if self.nodes(one) == 1
            and one.server == (server or self.spec.outside.own)
            and (one.numbers or one.withheld)
        ]
        for who, where in ((series, place), (series, "within"), (base, place), (base, "within")):
            found = [one for one in mine if (one.cell.series, *one.where) == (who, where, wait)]
            if found:
                yield from found
                return

    def alone(self, point: AppPoint) -> SingleNode | str:
        """Return what one node takes that holds what all nodes of a point hold, or why nobody knows.

        Of several the one with as many connections as all those nodes have: it is then as busy as they are.
        """
        names, values = self.spec.parameters, point.values
        whole = int(values[names.cache_kib]) * self.nodes(point)
        wanted = values | {names.nodes: 1, names.cache_kib: whole}
        all_of_them = int(values[names.connections]) * self.nodes(point)
        found = [
            one
            for one in self.lone(point.cell.series, *point.where, point.server)
            if {name: value for name, value in one.setting if name != names.connections}
            == {name: value for name, value in wanted.items() if name != names.connections}
        ]
        if not found:
            return NO_ALONE
        best = min(found, key=lambda one: abs(int(one.values[names.connections]) - all_of_them))
        why = best.withheld
        if not why and point.offered and best.offered:
            why = point.offered.apart(best.offered, "the single node", self.spec.one_load)
        if why:
            return why
        same = (best.cell.series, best.where) == (point.cell.series, point.where)
        return SingleNode(
            by_round=cpu_by_round(best.cell, self.spec.role),
            from_="" if same else f"{best.cell.series.label} {words.PLACES[best.where[0]]}",
            connections=int(best.values[names.connections]),
        )

    def cpu(self, point: AppPoint) -> ByRound:
        """Return the nodes' processors' time a request."""
        return cpu_by_round(point.cell, self.spec.role)

    def communication(self, point: AppPoint) -> ByRound:
        """Return the part of it that is communication; nothing where there is no single node to compare with."""
        alone = self.alone(point)
        return {} if isinstance(alone, str) else less(self.cpu(point), alone.by_round)

    def price(self, point: AppPoint) -> ByRound:
        """Return what a forwarded request costs."""
        shares = {key: one / PERCENT for key, one in self._numbers(point, self.spec.quantities.forwarded).items()}
        return divided(self.communication(point), shares)

    def _numbers(self, point: AppPoint, quantity: str) -> ByRound:
        return quantity_by_round(point.cell, quantity)

    def file_bytes(self, point: AppPoint) -> float | None:
        """Return the mean bytes of a file that came back to a forwarded request, with the heads of its messages."""
        names = self.spec.quantities
        small = [name for name in names.messages if name != names.files]
        found = []
        for sample in point.cell.samples:
            carried, share = number(sample, names.bytes), number(sample, names.forwarded)
            if carried is not None and share:
                heads = sum(number(sample, name) or 0.0 for name in small) * self.spec.micro.head_bytes
                found.append((carried - heads) / (share / PERCENT))
        return intervals.median(found) if found else None

    def micro(self, point: AppPoint) -> ByRound | str:
        """Return what both ends of a call take whose reply is as long as a file is in the mean; or why nobody knows."""
        micro, size = self.spec.micro, self.file_bytes(point)
        if size is None:
            return "nothing was forwarded"
        by_size: dict[int, ByRound] = {}
        for cell in self.calls(point):
            by_size[cell.case.workload.integer(micro.reply)] = cpu_by_round(cell)
        below = max((one for one in by_size if one <= size), default=None)
        above = min((one for one in by_size if one > size), default=None)
        if below is not None and above is not None:
            part = (size - below) / (above - below)
            high = by_size[above]
            return {key: value + part * (high[key] - value) for key, value in by_size[below].items() if key in high}
        nearest = below if below is not None else above
        if nearest is not None and abs(nearest - size) <= micro.apart * size:
            return by_size[nearest]
        return say("application.no_calls", size=units.size(round(size)))

    def calls(self, point: AppPoint) -> Iterator[Cell]:
        """Yield the microbenchmark of a point's layer, at its place and in its wait mode."""
        micro, case = self.spec.micro, point.cell.case
        for cell in self.comparison.data.cells:
            mine = cell.case
            if (cell.series, mine.place, mine.wait, mine.pattern) != (
                point.cell.series,
                case.place,
                case.wait,
                micro.pattern,
            ):
                continue
            usual = all(
                mine.file.is_usual(name, mine.workload)
                for name in mine.file.parameters
                if name not in (micro.request, micro.reply)
            )
            if cell.samples and usual and mine.workload[micro.request] == micro.head_bytes:
                yield cell


def rank_correlation(ours: Sequence[float], others: Sequence[float]) -> float | None:
    """Return Spearman's: 1 where both have the same order, -1 where it is reversed; ties have their mean rank."""
    left, right = _ranks(ours), _ranks(others)
    middle = (len(left) + 1) / 2
    spread = sum((one - middle) ** 2 for one in left) * sum((one - middle) ** 2 for one in right)
    if len(left) < 3 or not spread:
        return None
    together = sum((one - middle) * (other - middle) for one, other in zip(left, right, strict=True))
    return float(together / spread**0.5)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(one) + (ordered.count(one) + 1) / 2 for one in values]
