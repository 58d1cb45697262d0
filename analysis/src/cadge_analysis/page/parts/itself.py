# SPDX-License-Identifier: BSD-3-Clause
"""What a run says of itself: how often it called a difference what is none (A against A), and its self-test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf

from cadge_analysis import messages, units
from cadge_analysis.blocks.model import Fact
from cadge_analysis.prediction import SIZES, SizeClass
from cadge_analysis.selftest.pinned import sentence
from cadge_analysis.stats.inference.signed_rank import POWER
from cadge_analysis.stats.load import Dataset
from cadge_analysis.stats.twin import TwinRate, reason

say = partial(messages.say, "remarks")


def itself(
    data: Dataset, rate: TwinRate | None, of_tails: TwinRate | None = None, *, predicted: Sequence[SizeClass] = ()
) -> tuple[Fact, ...]:
    """Return it as facts: what was measured twice, how often it was called different, and what follows.

    of_tails: the same by the p99, which is counted apart. predicted: how many comparisons were to be decided.
    """
    tried = (*_predicted(predicted), *_tried(data))
    if rate is None:
        return (Fact(name="A against A", text=_without(data)), *tried)
    return (
        Fact(name="A against A", text=counted(rate)),
        Fact(name=say("itself.limit_title"), text=_limit(rate)),
        Fact(name="After correction", text=_corrected(rate)),
        *((Fact(name="By the p99", text=_tails(of_tails)),) if of_tails is not None else ()),
        *tried,
    )


def _predicted(classes: Sequence[SizeClass]) -> Iterator[Fact]:
    """Yield how many comparisons were decided, beside how many the plan predicted, by size of the difference."""
    if classes:
        parts = [
            say(
                "itself.predicted_over" if one.most == inf else "itself.predicted_to",
                most=one.most if one.most < inf else SIZES[-1],
                decided=one.decided,
                comparisons=one.comparisons,
                predicted=one.predicted,
            )
            for one in classes
        ]
        yield Fact(name="Predicted and decided", text=say("itself.predicted", classes=parts))


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
    called = f"{units.grouped(rate.called)} of {units.count_of(rate.cells, 'point')}"
    text = say(
        "itself.called",
        names=_names(rate),
        n=len(rate.series),
        called=called,
        called_n=rate.called,
        share=rate.rate,
        error=rate.error,
        nominal=rate.nominal,
        launches=_launches(rate),
    )
    if rate.without:
        text += " " + say("itself.not_judged", without=rate.without)
    return text


def _limit(rate: TwinRate) -> str:
    caught = rate.would_catch
    power = say("itself.power_none") if caught is None else say("itself.power", caught=caught, power=POWER)
    text = f"{say('itself.limit', limit=rate.quantile_999)} {power} "
    if rate.withhold:
        return say("itself.exceeded", text=text, first=withheld(rate)[0].lower(), rest=withheld(rate)[1:])
    return say("itself.not_exceeded", text=text)


def _corrected(rate: TwinRate) -> str:
    called = "none" if rate.after_correction == 0 else units.grouped(rate.after_correction)
    return say(
        "itself.corrected",
        called=called,
        cells=rate.cells,
        after_correction=rate.after_correction,
    )


def _tails(rate: TwinRate) -> str:
    called = "none" if rate.called == 0 else units.grouped(rate.called)
    text = (
        say(
            "itself.p99",
            cells=rate.cells,
            called=called,
            called_n=rate.called,
            rate=rate.rate,
            nominal=rate.nominal,
            after_correction=rate.after_correction,
            limit=rate.quantile_999,
        )
        + " "
    )
    return text + (f"{withheld(rate)}." if rate.withhold else say("itself.p99_sound"))


def _names(rate: TwinRate) -> str:
    labels = [series.label for series in rate.series]
    return units.listing(labels) if len(labels) <= 3 else units.count_of(len(labels), "layer")


def _launches(rate: TwinRate) -> str:
    return " or ".join(map(str, rate.launches)) + (" launches" if rate.launches != (1,) else " launch")


def _without(data: Dataset) -> str:
    if data.twins:
        return say("itself.too_few")
    return say("itself.no_twin")
