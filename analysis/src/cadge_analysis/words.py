# SPDX-License-Identifier: BSD-3-Clause
"""Names for people: places, wait modes, states; and what patterns and floors say of themselves. One spelling."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import partial

from cadge_analysis import messages, units
from cadge_analysis.stats.floors import Floor
from cadge_analysis.stats.load import Case, Cell, Dataset
from cadge_results import PatternFile
from cadge_results.formats.point import Value
from cadge_results.formats.trace import trace_text
from cadge_results.plugins.parameter import Parameter, Quantity

say = partial(messages.say, "general")

PLACE_ORDER = ("within", "between", "self")
WAIT_ORDER = ("poll", "block")
PLACES = {one: say(f"words.places.{one}") for one in PLACE_ORDER}
PLACES_SHORT = {one: one for one in PLACE_ORDER}
WAITS = {one: say(f"words.waits.{one}") for one in WAIT_ORDER}
RANKS_NOTHING = say("words.ranks_nothing")
UNCOMMITTED = say("words.uncommitted")
MACHINE_MOVED = say("words.machine_moved")
OF_GENERATORS_LIMIT = say("words.of_generators_limit")
PROBES = {one: say(f"words.probes.{one}") for one in ("line_ns", "copy_ns", "clock_ns")}
STATES = {one: say(f"words.states.{one}") for one in ("valid", "unsound", "failed", "refused", "missing")}
SHARED_MEMORY = {one: say(f"words.shared_memory.{one}") for one in ("private", "folder", "shared")}
_PHYSICAL = {"none", "no", "physical", ""}


def on_veth(data: Dataset) -> bool:
    """Tell whether the network between the hosts is made of virtual interfaces of one kernel."""
    if data.meta.testbed.kind == "emulated":
        return True
    for node in data.nodes:
        interfaces = node.interfaces
        if isinstance(interfaces, dict) and any(
            isinstance(facts, dict) and facts.get("driver") == "veth" for facts in interfaces.values()
        ):
            return True
    return False


def virtualisation(data: Dataset) -> tuple[str, ...]:
    """Return what the hosts say of a hypervisor or container around them; empty where there is none."""
    found = []
    for node in data.nodes:
        value = node.virtualisation
        if isinstance(value, str) and value.strip().lower() not in _PHYSICAL:
            found.append(value.strip())
        elif isinstance(value, dict) and value.get("hypervisor") is True:
            found.append(str(value.get("product") or "a hypervisor"))
    return tuple(dict.fromkeys(found))


def program_name(cell: Cell, data: Dataset) -> str:
    """Return what a floor program is, in words, and whether it is only a reference; a virtual link may rename it."""
    series, floor = cell.series, data.plan.floors.get(cell.series.layer)
    text = series.layer if floor is None else (on_veth(data) and floor.title_on_veth) or floor.title
    if series.settings:
        text += f" ({', '.join(f'{k}={v}' for k, v in series.settings)})"
    return f"{text}, a reference" if floor is not None and floor.reference else text


def floor_name(floor: Floor, data: Dataset) -> str:
    """Return what a floor is, in words: a program, at which size if not at its own, or what it is composed of."""
    names = [program_name(numbers.cell, data) for numbers in floor.programs]
    at = units.size(floor.program.cell.case.size)
    if floor.composed:
        return " + ".join((*names[:-1], say("words.best_copy_rate", program=names[-1], size=at)))
    return names[0] if floor.program.cell.case.size == floor.size else f"{names[0]}, measured at {at}"


def value(parameter: Parameter, found: Value) -> str:
    """Return a parameter's value for people: 8 B, 4 KiB, 16, 20 \u00b5s, 50 %, fetch-add; of a trace its number."""
    if isinstance(found, str):
        return found.replace("_", "-")
    if parameter.unit == "bytes":
        return units.size(found)
    if parameter.unit == "trace":
        return trace_text(found)
    if parameter.unit == "percent":
        return f"{units.grouped(found)}{units.THIN}%"
    return f"{units.us(found)} \u00b5s" if parameter.unit == "ns" else units.grouped(found)


def size(case: Case) -> str:
    """Return where a case stands on its axis, for people: 8 B, 50 %."""
    return value(case.file.parameters[case.file.axis], case.size)


def stands_at(case: Case) -> str:
    """Return a case's size, or what replaces it there: 8 B, 50 %, 20 000 calls/s offered."""
    if case.file.axis not in case.file.replaced(case.workload):
        return size(case)
    name = case.file.parameters[case.file.axis].unless or ""
    one = case.file.parameters[name]
    return one.say.replace("{title}", one.title).replace("{value}", value(one, case.workload[name]))


def workload(case: Case) -> str:
    """Return a case's workload without place and wait mode, by its pattern's words: "8 B", "8 B, window 16"."""
    return case.file.fill(case.file.workload_words, case.workload, value)


def figure(case: Case) -> str:
    """Return what a case's figure shows, with what its points have in common: "Latency against size, 16 in flight"."""
    axis = case.file.parameters[case.file.axis]
    along = "size" if axis.unit == "bytes" else axis.title
    against = case.file.words.figure or f"{case.file.main_quantity.title.capitalize()} against {along}"
    return case.file.fill(against, case.workload, value)


def ranked_by(case: Case) -> str:
    """Return which values keep a case from ranking: "; touch none, not ranked"; empty where it ranks."""
    said = [
        one.say.replace("{title}", one.title).replace("{value}", value(one, case.workload[name]))
        for name, one in case.file.parameters.items()
        if one.ranks is not None
    ]
    return "" if case.does_rank else say("words.not_ranked", values=said)


def baseline(file: PatternFile) -> str:
    """Return what points of a pattern are also divided by: "aggressor none"; empty where they are not."""
    if file.baseline is None:
        return ""
    one = file.parameters[file.baseline.parameter]
    return one.say.replace("{title}", one.title).replace("{value}", value(one, file.baseline.value))


def pattern(case: Case) -> str:
    """Return what a case's pattern is called."""
    return case.file.title


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How values of a quantity are shown: unit, what stored values are multiplied with, and what the unit is called."""

    unit: str
    scale: float
    spoken: str

    def text(self, stored: float) -> str:
        """Return a stored value with three significant digits and its unit."""
        return f"{units.us(stored) if self.scale != 1.0 else units.sig3(stored)} {self.unit}"


def shown(quantity: Quantity) -> ValueFormat:
    """Return how values of a quantity are shown."""
    if quantity.unit == "ns":
        return ValueFormat("\u00b5s", 1 / units.NS_PER_US, "microseconds")
    return ValueFormat(quantity.unit, 1.0, quantity.unit)


def slug(quantity: Quantity) -> str:
    """Return a quantity's unit as a part of a name for programs."""
    known = {"MB/s": "mb_s", "1/s": "per_s"}
    return known.get(quantity.unit) or re.sub(r"[^a-z0-9]+", "_", quantity.unit.lower()).strip("_")


def isolated(name: str) -> str:
    """Return a name that may stand in a sentence: one that writes from right to left, or turns, is set apart.

    First strong isolate and pop directional isolate (Unicode Standard Annex 9); other names stay as they are.
    """
    turns = {"R", "AL", "AN", "RLE", "LRE", "RLO", "LRO", "RLI", "LRI", "FSI", "PDF", "PDI"}
    return f"\u2068{name}\u2069" if any(unicodedata.bidirectional(one) in turns for one in name) else name
