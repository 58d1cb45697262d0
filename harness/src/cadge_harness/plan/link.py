# SPDX-License-Identifier: BSD-3-Clause
"""The rate of the data link: setting `link.rate` of a sweep's layers, e.g. `settings: {link.rate: 100Mbit}`.

A setting of a series, as variables of libraries are, so that results of different rates never meet. The hosts are set
to it for a block of its own (role cadge_link). Only an emulated testbed's link is ours to set: a cluster's is its
switch's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cadge_harness.errors import UsageError
from cadge_harness.plan.catalogue import Context, LayerInfo, Refusal
from cadge_harness.plan.site import PlanSite
from cadge_harness.plan.sweep import WantedPoint
from cadge_results import Plan, Reason
from cadge_results.formats.sweep import LayerEntry
from cadge_results.units import parse_rate

PREFIX = "link."
RATE = "link.rate"
RATE_BITS_MIN, RATE_BITS_MAX = 1_000_000, 100_000_000_000
"""Below, launches end by their deadlines; above, nothing here is as fast."""


def rate_of(settings: Mapping[str, str]) -> int:
    """Return the rate that settings state in bits a second, 0 where they state none. Raises ValueError."""
    return parse_rate(settings[RATE]) if RATE in settings else 0


def check_link(settings: Mapping[str, str]) -> None:
    """Raise UsageError where a setting of the link is none, or its value."""
    for name in settings:
        if name.startswith(PREFIX) and name != RATE:
            raise UsageError(f"there is no setting {name}; a link has {RATE}")
    try:
        bits = rate_of(settings)
    except ValueError as error:
        raise UsageError(f"{RATE}: {error}") from error
    if RATE in settings and not RATE_BITS_MIN <= bits <= RATE_BITS_MAX:
        raise UsageError(f"{RATE}: {settings[RATE]} is not within 1Mbit to 100Gbit")


def states_rate(entries: Iterable[LayerEntry]) -> bool:
    """Tell whether any of some layers is measured at a rate."""
    return any(RATE in entry.settings for entry in entries)


def limits_rate(plan: Plan) -> bool:
    """Tell whether any launch of a plan is made at a rate."""
    return any(launch.subject.setting(RATE) is not None for launch in plan.launches)


def refuse_rate(info: LayerInfo, settings: Mapping[str, str], wanted: WantedPoint, site: PlanSite) -> Refusal | None:
    """Return why a layer cannot be measured at the rate that its settings state, or None."""
    if RATE not in settings:
        return None
    if wanted.place != "between":
        return Refusal(code=Reason.PLACE, reason=f"the link that {RATE} is for is between hosts")
    if not site.own_link:
        reason = f"the link of testbed {site.name} is not ours to set to {RATE}; that of emulated hosts is"
        return Refusal(code=Reason.NODE_LACKS, reason=reason)
    if info.description is not None:
        context = info.description.contexts.get((wanted.place, wanted.wait))
        granted = context.caps if isinstance(context, Context) else info.description.claims or frozenset()
        if "RAW_LINK" in granted:
            reason = f"{info.name} has a raw link of its own, which {RATE} does not limit"
            return Refusal(code=Reason.NO_CAP, reason=reason)
    return None
