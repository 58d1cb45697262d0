# SPDX-License-Identifier: BSD-3-Clause
"""What may be wrong with a pattern file as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from cadge_results.plugins.parameter import LESS_ONE, NEIGHBOURS, ByChoice, ByOne, Number, leaves
from cadge_results.plugins.pattern_fields import PatternFields
from cadge_results.plugins.rules import FOLLOWS, PLACEHOLDER, BareLoop, KneeRule, LoadRule, Replays

ENDPOINTS_MAX = 64
RESERVED = frozenset({"pattern", "zip", "places", "waits", "layers", "place", "wait", "duration"})
"""Keys of a sweep's entries, which no parameter may have as its name."""


def problems(file: PatternFields) -> Iterator[str]:
    """Yield what is wrong with a pattern file: names that do not exist, values that are not allowed."""
    yield from _parameter_problems(file)
    yield from _role_problems(file)
    sizes = (*file.floor.sizes, *file.moves)
    for what, names in (
        ("axis", (file.axis,)),
        ("family", file.family),
        ("floor", (*file.floor.sizes, *file.floor.carry, *file.floor.alike)),
        ("moves", file.moves),
        ("outstanding", (file.outstanding,) if file.outstanding else ()),
        ("fits", file.fits.parameters if file.fits else ()),
        ("modelled_as", tuple(name for one in file.modelled_as for name in one.parameters)),
    ):
        yield from (f"{what}: there is no parameter {name}" for name in names if name not in file.parameters)
    numbers = (file.axis, *file.family, *((file.outstanding,) if file.outstanding else ()))
    for name in numbers:
        if file.parameters[name].type != "integer":
            yield f"{name} is a choice, and a number was expected"
    yield from _fit_problems(file)
    yield from _modelled_problems(file)
    for name in sizes:
        if file.parameters[name].unit != "bytes":
            yield f"{name} is no size in bytes"
    for name, alike in file.floor.alike.items():
        if alike.is_ == FOLLOWS and file.parameters[name].follows is None:
            yield f"floor: {name} follows nothing"
    if file.baseline is not None:
        one = file.parameters.get(file.baseline.parameter)
        if one is None or one.type != "choice":
            yield f"baseline: there is no choice {file.baseline.parameter}"
        elif why := one.refuse(file.baseline.value):
            yield f"baseline: {file.baseline.parameter}: {why}"
    if file.knee is not None:
        yield from _knee_problems(file, file.knee)
    if file.one_load is not None:
        yield from _load_problems(file, file.one_load)
    if file.unclocked is not None:
        yield from _unclocked_problems(file, file.unclocked)
    if file.replays is not None:
        yield from _replay_problems(file, file.replays)
    if file.main_quantity.caveat or file.main_quantity.detail:
        yield f"quantities: {file.main} is the main one, and cannot be a caveat or a detail"
    for text in (file.words.workload, file.words.figure, file.words.work):
        for name in PLACEHOLDER.findall(text):
            if name not in file.parameters:
                yield f"words: there is no parameter {name}"


def _unclocked_problems(file: PatternFields, rule: BareLoop) -> Iterator[str]:
    if file.main_quantity.kind != "histogram":
        yield f"unclocked: {file.main} is the main quantity, and has no samples"
    parameter = file.parameters.get(rule.parameter)
    if parameter is None:
        yield f"unclocked: there is no parameter {rule.parameter}"
        return
    for value in (rule.bare, rule.looking):
        if why := parameter.refuse(value):
            yield f"unclocked: {rule.parameter}: {why}"


def _modelled_problems(file: PatternFields) -> Iterator[str]:
    for one in file.modelled_as:
        wanted = {**dict.fromkeys(one.sizes, "bytes"), **({one.works: "ns"} if one.works else {})}
        for name, unit in wanted.items():
            if name in file.parameters and file.parameters[name].unit != unit:
                yield f"modelled_as: {name} is not in {unit}"


def _fit_problems(file: PatternFields) -> Iterator[str]:
    if file.fits is None:
        return
    for name in file.fits.quantities:
        if name not in file.quantities:
            yield f"fits: there is no quantity {name}"
        elif file.quantities[name].kind != "histogram":
            yield f"fits: {name} is no histogram"
    for name, unit in zip(file.fits.parameters, ("bytes", "count", "percent"), strict=True):
        if name in file.parameters and file.parameters[name].unit != unit:
            yield f"fits: {name} is not in {unit}"


def _replay_problems(file: PatternFields, rule: Replays) -> Iterator[str]:
    for name, word in rule.when.items():
        one = file.parameters.get(name)
        if one is None or one.type != "choice":
            yield f"replays: there is no choice {name}"
        elif why := one.refuse(word):
            yield f"replays: {name}: {why}"
    number = file.parameters.get(rule.by)
    if number is None or number.unit != "trace" or number.default != 0:
        yield f"replays: {rule.by} is no parameter with the unit trace whose default is 0"
    for name in rule.decides:
        given = file.parameters.get(name)
        if given is None or given.default is None:
            yield f"replays: there is no parameter {name} that has a default"
        elif not any(one.when == rule.when and one.then.get(name) == given.default for one in file.constraints):
            yield f"replays: no constraint keeps {name} at its default"


def _knee_problems(file: PatternFields, rule: KneeRule) -> Iterator[str]:
    if file.main_quantity.kind != "histogram":
        yield f"knee: {file.main} is the main quantity, and has no p99"
    for name in (rule.offered, rule.achieved):
        if name not in file.quantities or file.quantities[name].kind != "rate":
            yield f"knee: there is no rate {name}"
    if why := file.parameters[file.axis].refuse(rule.rest):
        yield f"knee: rest: {why}"


def _load_problems(file: PatternFields, rule: LoadRule) -> Iterator[str]:
    if rule.offered not in file.quantities or file.quantities[rule.offered].kind != "rate":
        yield f"one_load: there is no rate {rule.offered}"
    if not any(one.of is not None and one.unless == rule.given for one in file.parameters.values()):
        yield f"one_load: {rule.given} replaces no share of a rate"


def _parameter_problems(file: PatternFields) -> Iterator[str]:
    for name, one in file.parameters.items():
        if name in RESERVED:
            yield f"parameters: {name} is a key of the sweep and cannot be a parameter"
        instead = file.parameters.get(one.unless) if one.unless is not None else None
        if one.unless is not None and (one.default is None or instead is None or instead.default is None):
            yield f"parameters: {name} and what replaces it, {one.unless}, have to have defaults"
        rate = file.quantities.get(one.of) if one.of is not None else None
        if one.of is not None and (one.unless is None or rate is None or rate.kind != "rate"):
            yield f"parameters: {name} is a share of {one.of}, which is no rate here, or nothing replaces it"
        leader = file.parameters.get(one.follows) if one.follows is not None else None
        if one.follows is not None and (leader is None or leader.follows or leader.type != one.type):
            yield f"parameters: {name} follows {one.follows}, which has no values of its own, or none of its type"
    conditions = [(one.when, one.then) for one in file.constraints]
    conditions += [(one.when, {}) for one in file.needs] + [(one.when, {}) for one in file.roles.values()]
    conditions += [(one.when, {}) for one in file.limits] + [(one.when, {}) for one in file.programs]
    conditions += [(role.acts, {}) for role in file.roles.values() if isinstance(role.acts, dict)]
    for part in conditions:
        for values in part:
            for name, value in values.items():
                if name not in file.parameters:
                    yield f"there is no parameter {name}"
                elif why := file.parameters[name].refuse(value):
                    yield f"{name}: {why}"

    for name in (name for one in file.limits for name in one.most):
        if getattr(file.parameters.get(name), "type", "") != "integer":
            yield f"limits: there is no number {name} among the parameters"


def _role_problems(file: PatternFields) -> Iterator[str]:
    names = list(file.roles)
    if not any(role.acts for role in file.roles.values()):
        yield "roles: one of them has to act"
    given: list[int | str] = [file.self_channels]
    for role in file.roles.values():
        given.append(role.count)
        threads = list(leaves(role.threads))
        if 0 in threads or any(isinstance(one, str) and one.endswith(LESS_ONE) for one in threads):
            yield "roles: a role has one thread at least"
        for number in (role.threads, role.hands):
            yield from _by_choice_problems(file, number)
            given += leaves(number)
    for value in given:
        if (
            isinstance(value, str)
            and getattr(file.parameters.get(value.removesuffix(LESS_ONE)), "type", "") != "integer"
        ):
            yield f"roles: there is no number {value} among the parameters"
        elif isinstance(value, int) and value > ENDPOINTS_MAX:
            yield f"roles: {value} is more than {ENDPOINTS_MAX}"
    for name, role in file.roles.items():
        for peer in role.peers:
            if peer == NEIGHBOURS:
                continue
            if peer not in names:
                yield f"roles: {name} has peers {peer}, which is no role; there are {', '.join(names)}"
            elif name not in file.roles[peer].peers:
                yield f"roles: {name} has channels to {peer}, but {peer} has none to {name}"
            elif role.peers.count(peer) != file.roles[peer].peers.count(name):
                yield f"roles: {name} lists {peer} more often, or less, than {peer} lists {name}"
            elif role.paired and (not file.roles[peer].paired or role.count != file.roles[peer].count):
                yield f"roles: {name} is paired with {peer}, which has to be paired, and as many"


def _by_choice_problems(file: PatternFields, number: Number | ByOne | ByChoice) -> Iterator[str]:
    if not isinstance(number, dict):
        return
    if len(number) != 1:
        yield "roles: a number depends on one choice"
    for choice, words in number.items():
        parameter = file.parameters.get(choice)
        if parameter is None or parameter.type != "choice":
            yield f"roles: there is no choice {choice} among the parameters"
        elif set(words) != set(parameter.values):
            yield f"roles: a number by {choice} has to be given for each of {', '.join(parameter.values)}"
        for one in words.values():
            yield from _by_choice_problems(file, one)
