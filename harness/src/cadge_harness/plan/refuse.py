# SPDX-License-Identifier: BSD-3-Clause
"""Refusing points without trying them: from tested limits, the build, the testbed and what the driver described."""

from __future__ import annotations

from cadge_harness.plan.catalogue import LayerInfo, Refusal
from cadge_harness.plan.site import Site, refuse_place
from cadge_harness.plan.sweep import Wanted
from cadge_results.layerfile import Limit

_CAP_BY_OPERATION = {"put": "PUT", "get": "GET", "fetch_add": "FETCH_ADD"}


def refuse_point(info: LayerInfo, wanted: Wanted, site: Site) -> Refusal | None:
    """Return why a point is planned as refused, or None. The first reason that holds is given.

    In order: limits of the layer file (tested, and the best explained), places, the build, the testbed, and what the
    driver found that the layer grants there.
    """
    for limit in info.file.limits:
        if _matches(limit, wanted):
            return Refusal(code=limit.reason_code or _code_of(limit), reason=limit.reason)
    if wanted.place not in info.file.places:
        return Refusal(code="PLACE", reason=f"{info.name} works at {' and '.join(info.file.places)} alone")
    if info.absent is not None:
        return info.absent
    return refuse_place(site, wanted.place, wanted.wait) or _described(info, wanted)


def _matches(limit: Limit, wanted: Wanted) -> bool:
    when, workload = limit.when, wanted.workload
    largest = max(workload.request_bytes, workload.reply_bytes)
    return (
        when.place in (None, wanted.place)
        and when.wait in (None, wanted.wait)
        and when.pattern in (None, workload.pattern)
        and when.target in (None, workload.target)
        and (when.min_bytes is None or largest >= when.min_bytes)
    )


def _code_of(limit: Limit) -> str:
    if limit.when.wait is not None:
        return "NO_WAIT" if limit.when.wait == "block" else "NO_POLL"
    if limit.when.min_bytes is not None:
        return "MSG_TOO_LARGE"
    return "NO_CAP" if limit.when.pattern is not None or limit.when.target is not None else "PLACE"


def _described(info: LayerInfo, wanted: Wanted) -> Refusal | None:
    if info.description is None:
        return None
    context = info.description.contexts.get((wanted.place, wanted.wait))
    if isinstance(context, Refusal) or context is None:
        return context
    operation = wanted.workload.operation
    if operation is not None and _CAP_BY_OPERATION[operation] not in context.caps:
        return Refusal(code="NO_CAP", reason=f"{info.name} has no {operation}")
    return None
