# SPDX-License-Identifier: BSD-3-Clause
"""The table `cells`: a row for every planned point with its estimates, as the report and `cadge export` have them."""

from __future__ import annotations

from collections.abc import Iterator

from cadge_analysis import export
from cadge_analysis.judged import judged
from cadge_analysis.stats.compare import compare
from cadge_analysis.stats.load import read
from cadge_analysis.tables.table import Column, Kind, Row, Table, column_of, parameters
from cadge_results import Campaign

_FIXED = (
    *column_of(
        "text",
        campaign_id="the campaign",
        point_id="the point: the same thing measured in the same way has the same one in every campaign",
        kind="layer, or floor: a program that shows what the machine can do without a layer",
        layer="the layer's name, or the floor's",
        shims="what was set before it, outermost first, joined by +",
        settings="options that it was opened with, as name=value",
    ),
    *column_of("boolean", twin="true: a second series of the same thing, which shows what the machine alone changes"),
    *column_of(
        "text",
        place="where its endpoints ran: within a host, or between hosts",
        wait="how it waited: poll or block",
        hosts="names of the hosts that its launches were planned on",
        pattern="the workload; its parameters follow, a column each",
        state="planned, or refused",
        reason="why it was refused, or why attempts of it do not count",
    ),
    *column_of(
        "integer",
        attempts_planned="attempts that were planned, one a launch",
        attempts_valid="attempts that count",
        samples="operations whose time was recorded, all launches together",
        operations="operations carried out, all launches together",
    ),
    *column_of("number", coverage="how often the intervals hold the true value, between 0 and 1"),
    *column_of(
        "text",
        floor="the floor that it is held against",
        floor_point_id="the floor's point",
        references="what else it is shown beside",
        verdict="against the baseline: faster, slower, same or cannot tell",
        verdict_against="the baseline",
        verdict_without="why it is not compared with the baseline, though it was measured beside it",
        p99_verdict="the same of the 99th percentile",
        p99_verdict_against="the baseline",
        p99_verdict_without="why the tail has none",
    ),
    *column_of(
        "number",
        beside_native_low="what share of a plain program's figure over the same library is known of it: the lowest",
        beside_native_high="the highest",
    ),
    *column_of("integer", floor_size_bytes="the size of message that the floor was measured with"),
    *column_of("boolean", floor_composed="whether the floor is put together of several measurements"),
    *column_of(
        "boolean",
        verdict_withheld="whether no verdict is given; the report says why",
        p99_verdict_withheld="the same of the 99th percentile",
    ),
    *column_of("boolean", leads="whether it is in the leading group of its case"),
    *column_of("boolean", verdict_early="whether it was decided at a look before the last"),
    *column_of("boolean", p99_verdict_early="whether it was decided at a look before the last"),
    *column_of(
        "boolean",
        verdict_two_levels="whether launches switch between two levels, so that signs alone decide",
        p99_verdict_two_levels="the same of the 99th percentile",
        verdict_pairs_disagree="whether the ratio of both medians contradicts the median of paired ratios",
        p99_verdict_pairs_disagree="the same of the 99th percentile",
    ),
    *column_of("integer", lost="messages that were lost", late="messages that came after their time"),
)
_KINDS: dict[str, Kind] = {one.name: one.kind for one in _FIXED}
_ABOUT = {one.name: one.about for one in _FIXED}
ENDS = (
    ("_low_ns", "lower end of its interval, ns"),
    ("_high_ns", "upper end of its interval, ns"),
    ("_p50_ns", "median: the middle of the launches' medians, ns"),
    ("_p99_ns", "99th percentile, ns"),
    ("_p999_ns", "99.9th percentile, ns"),
)


def columns(campaign: Campaign) -> tuple[Column, ...]:
    """Return the columns of a campaign: of its plan's parameters, quantities and roles."""
    own = {one.name: one for one in parameters(campaign.plan)}
    return tuple(own.get(name) or _column(name) for name in export.columns(campaign.plan))


def _column(name: str) -> Column:
    about = _ABOUT.get(name) or next((text for end, text in ENDS if name.endswith(end)), "an estimate; see its end")
    return Column(name, _KINDS.get(name, "number"), about)


def rows(campaign: Campaign) -> Iterator[Row]:
    """Yield a row for every planned point, in the report's order; those measured a second time come last."""
    comparison = compare(read(campaign))
    return export.records(comparison, judged(comparison))


CELLS = Table(
    "cells",
    "a row for every planned point: estimates over all launches, with intervals and verdicts",
    _FIXED,
    columns,
    rows,
)
