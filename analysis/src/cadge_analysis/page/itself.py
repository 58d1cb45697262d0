# SPDX-License-Identifier: BSD-3-Clause
"""What a run says of itself: how often it called a difference what is none (A against A), and its self-test."""

from __future__ import annotations

from cadge_analysis import units, words
from cadge_analysis.blocks.model import Fact
from cadge_analysis.selftest.pinned import sentence
from cadge_analysis.stats.load import Dataset
from cadge_analysis.stats.twin import TwinRate, reason


def itself(data: Dataset, rate: TwinRate | None, of_tails: TwinRate | None = None) -> tuple[Fact, ...]:
    """Return it as facts: what was measured twice, how often it was called different, and what follows.

    of_tails: the same by the p99, which is counted apart.
    """
    tried = _tried(data)
    if rate is None:
        return (Fact(name="A against A", text=_without(data)), *tried)
    return (
        Fact(name="A against A", text=counted(rate)),
        Fact(name="How many are too many", text=_limit(rate)),
        Fact(name="After correction", text=_corrected(rate)),
        *((Fact(name="By the p99", text=_tails(of_tails)),) if of_tails is not None else ()),
        *tried,
    )


def _tried(data: Dataset) -> tuple[Fact, ...]:
    """Return which self-test there was, and what each of its parts found."""
    pin = data.meta.selftest
    found = (Fact(name=f"Self-test: {name}", text=f"{text}.") for name, text in (pin.says if pin else {}).items())
    return (Fact(name="Self-test", text=sentence(data.meta, data.nodes)), *found)


def withheld(rate: TwinRate | None) -> str:
    """Return why no verdict is given in this campaign, as a sentence; "" where A against A speaks against none."""
    if rate is None or not rate.withhold:
        return ""
    return f"Verdicts{' on the p99' if rate.ending else ''} are withheld: {reason(rate)}"


def counted(rate: TwinRate) -> str:
    """Return how often what was measured twice was called different, in a few sentences."""
    called = f"{units.grouped(rate.called)} of {units.count_of(rate.cells, 'cell')}"
    text = (
        f"{_names(rate)} {'was' if len(rate.series) == 1 else 'were'} measured twice, as two series that nobody who "
        f"measures can tell apart, and judged as all others are: {called} {'was' if rate.called == 1 else 'were'} "
        f"called different ({units.percent(rate.rate)}), at {units.percent(rate.error, 0)} each and without "
        f"correction. The test attains {units.percent(rate.nominal)} with {_launches(rate)}."
    )
    if rate.without:
        text += (
            f" {units.count_of(rate.without, 'cell')} could not be judged: too few launches in common, or rounds that "
            "follow one another too closely."
        )
    return text


def _limit(rate: TwinRate) -> str:
    text = (
        f"Of so many independent cells at that level no more than {rate.quantile_999} are called in 999 of 1\u202f000 "
        "campaigns (binomial). Cells of one campaign are not independent, so that even a sound one exceeds it somewhat "
        "more often. "
    )
    if rate.withhold:
        return f"{text}Here it is exceeded: {withheld(rate)[0].lower()}{withheld(rate)[1:]}."
    return f"{text}It is not exceeded: nothing here speaks against the verdicts."


def _corrected(rate: TwinRate) -> str:
    called = "none" if rate.after_correction == 0 else units.grouped(rate.after_correction)
    return (
        f"With the correction within a pattern at a place that layers' verdicts have, {called} of "
        f"{units.count_of(rate.cells, 'cell')} {'is' if rate.after_correction == 1 else 'are'} called different."
    )


def _tails(rate: TwinRate) -> str:
    called = "none" if rate.called == 0 else units.grouped(rate.called)
    text = (
        f"Of {units.count_of(rate.cells, 'cell')} with samples enough {called} {'was' if rate.called == 1 else 'were'} "
        f"called different ({units.percent(rate.rate)}; the test attains {units.percent(rate.nominal)}), "
        f"{units.grouped(rate.after_correction)} after correction; no more than {rate.quantile_999} are to be. "
    )
    return text + (f"{withheld(rate)}." if rate.withhold else "Nothing here speaks against the verdicts on the p99.")


def _names(rate: TwinRate) -> str:
    labels = [series.label for series in rate.series]
    return words.listing(labels) if len(labels) <= 3 else units.count_of(len(labels), "layer")


def _launches(rate: TwinRate) -> str:
    return " or ".join(map(str, rate.launches)) + (" launches" if rate.launches != (1,) else " launch")


def _without(data: Dataset) -> str:
    if data.twins:
        return "A layer was measured twice, but no cell of both has launches enough to be judged."
    return (
        "No layer was measured twice in this campaign: how often it would call a difference what is none is not known."
    )
