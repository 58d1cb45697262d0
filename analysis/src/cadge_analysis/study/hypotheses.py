# SPDX-License-Identifier: BSD-3-Clause
"""Claims of a paper, and what our ratios say of each: how many speak for it, against it, or are undecided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.make import line_of, number_columns, plain, row_name, words_cell, words_column
from cadge_analysis.blocks.model import Region, Table, TableLine
from cadge_analysis.cells.shown import Value
from cadge_analysis.stats.compare import Comparison
from cadge_analysis.stats.intervals import TARGET_COVERAGE, Estimate
from cadge_analysis.study import contrast, shares
from cadge_analysis.study.published import HypothesisOf, Publication
from cadge_results.plugins.parameter import holds

say = partial(messages.say, "study")

UNKNOWN = "cannot be told"
ANCHOR: Literal["hypotheses"] = "hypotheses"
COLUMNS = (
    words_column("claim"),
    words_column("published", "said"),
    *number_columns(("for it", "against it", UNKNOWN)),
    words_column("verdict", "verdict"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim, what was published of it, what of ours speaks for it, against it, or cannot be told, and the verdict."""

    claim: str
    said: str
    criterion: str
    counts: tuple[Value, Value, Value]
    verdict: str


def section(claims: Sequence[Claim]) -> Region:
    """Return the section of a page that has claims."""
    rule = plain(say("claims"))
    table = Table(label="Hypotheses", role="plain hypotheses", columns=COLUMNS, lines=tuple(map(_line, claims)))
    return Region(id=ANCHOR, title="Hypotheses", blocks=(rule, table))


def _line(one: Claim) -> TableLine:
    name = row_name(one.claim, one.criterion)
    return line_of(name, (words_cell(one.said), *one.counts, words_cell(one.verdict)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One ratio, and whose it is. `withheld`: nothing is concluded from it."""

    label: str
    ratio: Estimate
    withheld: bool


def _cases(comparisons: Sequence[Comparison], published: Publication, spec: HypothesisOf) -> Iterator[_Case]:
    for comparison in comparisons:
        if spec.size is not None and published.shares is not None:
            for share in shares.found(comparison, published.layers, published.shares):
                if share.size == spec.size and share.ratio is not None:
                    series, place, wait = share.where
                    held = bool(comparison.why_not(published.shares.pattern, place, wait))
                    yield _Case(label=f"{series.label} {words.PLACES[place]}", ratio=share.ratio, withheld=held)
            continue
        about = next(one for one in published.contrasts if one.title == spec.contrast)
        for pair in contrast.pairs(comparison, published.layers, about):
            if pair.ratio is not None and holds(spec.given, pair.case.workload):
                label = f"{pair.layer} {words.PLACES[pair.case.place]}"
                yield _Case(label=label, ratio=pair.ratio, withheld=bool(pair.withheld))


def speaks(ratio: Estimate, *, most: float | None = None, above: float = 0.0) -> str:
    """Return "for", "against", or "open": of a claim that a ratio is at most so much, or else above so much."""
    if ratio.low is None or ratio.high is None or ratio.coverage < TARGET_COVERAGE:
        return "open"
    if most is not None:
        return "for" if ratio.high <= most else "against" if ratio.low > most else "open"
    return "for" if ratio.low > above else "against" if ratio.high <= above else "open"


def _verdict(cases: int, counts: Counter[str]) -> str:
    if not cases:
        return say("hypotheses.not_tested_no_campaign")
    if not counts["for"] and not counts["against"]:
        return UNKNOWN
    if not counts["against"]:
        return "holds" if not counts["open"] else say("hypotheses.holds_where_can_told")
    if not counts["for"]:
        return "does not hold" if not counts["open"] else say("hypotheses.does_not_hold_where")
    return say("hypotheses.depends_layer_size")


def _value(labels: Sequence[str]) -> Value:
    """Return how many there are, and whose."""
    counted = Counter(labels)
    detail = "; ".join(f"{label} ({often})" if often > 1 else label for label, often in sorted(counted.items()))
    return Value(text=str(len(labels)), detail=detail, raw=str(len(labels)))


def _criterion(spec: HypothesisOf) -> str:
    what = f"share at {units.size(spec.size)}" if spec.size is not None else f"ratio of \u201c{spec.contrast}\u201d"
    bound = f"at most {units.times(spec.most)}" if spec.most is not None else f"above {units.times(spec.above or 0.0)}"
    given = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in spec.given.items())
    return f"{what}{f' ({given})' if given else ''}, {bound}"


def hypotheses(comparisons: Sequence[Comparison], published: Publication) -> Iterator[Claim]:
    """Yield every claim, in the order of the study, over all campaigns of the page."""
    for spec in published.hypotheses:
        cases = [
            (case.label, "open" if case.withheld else speaks(case.ratio, most=spec.most, above=spec.above or 0.0))
            for case in _cases(comparisons, published, spec)
        ]
        made = judged(spec.claim, spec.said, _criterion(spec), cases)
        held = next((one.withheld for one in comparisons if one.withheld), "")
        yield replace(made, verdict=f"withheld: {held}") if held and made.verdict == UNKNOWN else made


def judged(claim: str, said: str, criterion: str, cases: Sequence[tuple[str, str]], *, none: str = "") -> Claim:
    """Return a claim with what speaks for it, against it, or cannot be told: (whose it is, which of these).

    `none`: what is said where there is no case at all.
    """
    by: dict[str, list[str]] = {"for": [], "against": [], "open": []}
    for label, word in cases:
        by[word].append(label)
    counts = Counter({word: len(labels) for word, labels in by.items()})
    return Claim(
        claim=claim,
        said=said,
        criterion=criterion,
        counts=(_value(by["for"]), _value(by["against"]), _value(by["open"])),
        verdict=none if none and not cases else _verdict(len(cases), counts),
    )
