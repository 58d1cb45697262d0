# SPDX-License-Identifier: BSD-3-Clause
"""Refusing points without trying them: from tested limits, the build, the testbed and what the driver described."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from cadge_harness.errors import UsageError
from cadge_harness.plan.cast import Cast, contexts_by_host
from cadge_harness.plan.catalogue import Context, LayerInfo, Refusal
from cadge_harness.plan.site import (
    PlanSite,
    refuse_address,
    refuse_cast,
    refuse_launcher,
    refuse_place,
    refuse_rights,
)
from cadge_harness.plan.sweep import WantedPoint
from cadge_harness.words import count_of, runs_only
from cadge_results import LayerFile, PatternFile, Reason
from cadge_results.plugins.layerfile import Limit
from cadge_results.plugins.parameter import holds


def refuse_point(
    info: LayerInfo,
    wanted: WantedPoint,
    pattern: PatternFile,
    cast: Cast,
    site: PlanSite,
    *,
    set_otherwise: bool = False,
) -> Refusal | None:
    """Return why a point is planned as refused, or None. The first reason that holds is given.

    In order: limits of the layer file (tested, and the best explained), places, the build, limits of the pattern,
    the testbed, what this machine lacks, and what the driver found that the layer grants there; `set_otherwise`: with
    settings it may grant whatever it claims.
    """
    if set_otherwise:
        info = _at_its_best(info)
    sleeper = info.name if wanted.wait == "poll" and _sleeps(info, wanted, pattern, cast) else ""
    return (
        _of_the_layer(info, wanted, pattern)
        or _of_the_pattern(info, wanted, pattern)
        or _of_the_contexts(info, cast)
        or _another_endpoint(wanted, pattern)
        or refuse_place(site, wanted.place)
        or _few_hosts(wanted, pattern, site)
        or refuse_cast(site, wanted.place, wanted.wait, cast, sleeper=sleeper)
        or refuse_launcher(site, info.file.launcher, cast)
        or (refuse_address(site, info.name, cast) if info.file.ipv4_only else None)
        or refuse_rights(site, info.name, info.file.rights, cast)
        or _unloadable(info, site)
        or _forbidden(info, wanted, site)
        or _described(info, wanted, pattern, cast)
    )


def _at_its_best(info: LayerInfo) -> LayerInfo:
    """Return a layer that grants whatever it claims: what it grants was found without settings."""
    known = info.description
    if known is None or known.claims is None:
        return info
    contexts = {
        where: context if isinstance(context, Refusal) else replace(context, caps=known.claims)
        for where, context in known.contexts.items()
    }
    return replace(info, description=replace(known, contexts=contexts))


def _of_the_layer(info: LayerInfo, wanted: WantedPoint, pattern: PatternFile) -> Refusal | None:
    for limit in info.file.limits:
        if _matches(limit, wanted, pattern):
            return Refusal(code=limit.reason_code or _code_of(limit), reason=limit.reason)
    if wanted.place not in info.file.places:
        return Refusal(code=Reason.PLACE, reason=f"{info.name} {runs_only(info.file.places)}")
    if wanted.place not in pattern.places:
        return Refusal(code=Reason.PLACE, reason=f"{wanted.workload.pattern} {runs_only(pattern.places)}")
    return info.absent


def _of_the_pattern(info: LayerInfo, wanted: WantedPoint, pattern: PatternFile) -> Refusal | None:
    for limit in pattern.limits:
        if not limit.allows(info.file.name, wanted.wait, wanted.workload):
            return Refusal(code=limit.reason_code, reason=limit.reason)
    return None


def _of_the_contexts(info: LayerInfo, cast: Cast) -> Refusal | None:
    bears = info.file.contexts
    most = max(contexts_by_host(cast).values(), default=0)
    if bears is None or most <= bears.a_host:
        return None
    return Refusal(code=Reason.NODE_LACKS, reason=f"{bears.reason}; here {most} would have to share a host")


def _another_endpoint(wanted: WantedPoint, pattern: PatternFile) -> Refusal | None:
    extra = [name for name in pattern.roles_of(wanted.workload) if pattern.roles[name].when]
    if wanted.place != "self" or not extra:
        return None
    return Refusal(code=Reason.PLACE, reason=f"place self has one endpoint; {extra[0]} is another one")


def _few_hosts(wanted: WantedPoint, pattern: PatternFile, site: PlanSite) -> Refusal | None:
    if wanted.place != "between" or len(site.hosts) >= pattern.hosts_between:
        return None
    return Refusal(
        code=Reason.NODE_LACKS,
        reason=(
            f"testbed {site.name} has {count_of(len(site.hosts), 'host')}; {wanted.workload.pattern} needs "
            f"{pattern.hosts_between} at place between, one for each role"
        ),
    )


def _sleeps(info: LayerInfo, wanted: WantedPoint, pattern: PatternFile, cast: Cast) -> bool:
    """Tell whether the same point could be measured in block mode."""
    blocking = replace(wanted, wait="block")
    return _of_the_layer(info, blocking, pattern) is None and _described(info, blocking, pattern, cast) is None


def _matches(limit: Limit, wanted: WantedPoint, pattern: PatternFile) -> bool:
    when, workload = limit.when, wanted.workload
    largest = max(pattern.moved_bytes(workload), default=0)
    return (
        when.place in (None, wanted.place)
        and when.wait in (None, wanted.wait)
        and when.pattern in (None, workload.pattern)
        and holds(when.parameters, workload)
        and (when.min_bytes is None or largest >= when.min_bytes)
    )


def _code_of(limit: Limit) -> Reason:
    if limit.when.wait is not None:
        return Reason.NO_WAIT if limit.when.wait == "block" else Reason.NO_POLL
    if limit.when.min_bytes is not None:
        return Reason.MSG_TOO_LARGE
    return Reason.NO_CAP if limit.when.pattern is not None or limit.when.parameters else Reason.PLACE


def _unloadable(info: LayerInfo, site: PlanSite) -> Refusal | None:
    """Return why a layer cannot be loaded here. On other machines it may: their launches say so."""
    if not site.here or not info.unloadable:
        return None
    return Refusal(code=Reason.NODE_LACKS, reason=info.unloadable)


def _forbidden(info: LayerInfo, wanted: WantedPoint, site: PlanSite) -> Refusal | None:
    """Return why this user may not open a layer here. On other machines he may: their launches say so."""
    context = info.description.contexts.get((wanted.place, wanted.wait)) if info.description else None
    if not site.here or not isinstance(context, Refusal) or context.code is not Reason.PERMISSION:
        return None
    return context


def _described(info: LayerInfo, wanted: WantedPoint, pattern: PatternFile, cast: Cast) -> Refusal | None:
    if info.description is None:
        return None
    context = info.description.contexts.get((wanted.place, wanted.wait))
    if isinstance(context, Refusal) and context.code is not Reason.PERMISSION:
        return context
    # a layer that mpirun starts cannot be opened beforehand; what it does not even claim it lacks all the same
    granted = context.caps if isinstance(context, Context) else info.description.claims
    if granted is None:
        return None
    lacking = [cap for cap in pattern.caps_needed(wanted.workload) if cap not in granted]
    if lacking:
        return Refusal(code=Reason.NO_CAP, reason=f"{info.name} has no {', '.join(cap.lower() for cap in lacking)}")
    if wanted.wait == "block" and "EVENT_FD" not in granted and (why := _needs_descriptor(pattern, cast)):
        return Refusal(code=Reason.NO_WAIT, reason=f"{info.name} has no descriptor to wait for (event_fd), so {why}")
    return None


def _needs_descriptor(pattern: PatternFile, cast: Cast) -> str | None:
    """Return what a sleeping endpoint could not do without one."""
    if any(endpoint.hands for endpoint in cast):
        return "another thread cannot end its sleep"
    if any(pattern.roles[endpoint.role].own_loop for endpoint in cast):
        return "the program's own event loop cannot hold it"
    return None


PREFIX = "env."
_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")


def check_variables(file: LayerFile, settings: Mapping[str, str]) -> None:
    """Raise UsageError where a setting is a variable that does not steer the layer's library, or cannot be one."""
    for setting, value in settings.items():
        if not setting.startswith(PREFIX):
            continue
        name = setting.removeprefix(PREFIX)
        if not _NAME.fullmatch(name) or not value.isprintable():
            raise UsageError(f"layer {file.name}: {setting!r} = {value!r} cannot be an environment variable")
        if not file.variables:
            raise UsageError(f"layer {file.name}: no environment variable steers it, so a sweep cannot set {name}")
        if not name.startswith(file.variables):
            known = " or ".join(f"{beginning}*" for beginning in file.variables)
            raise UsageError(f"layer {file.name}: a sweep may set {known} for it, not {name}")
