# SPDX-License-Identifier: BSD-3-Clause
"""The method in words. What the report does to numbers is said here and in `stats`; both must agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from cadge_analysis import units, words
from cadge_analysis.blocks.model import Fact
from cadge_analysis.models.fit import PIECES_MOST, TOLERANCE
from cadge_analysis.models.pieces import SIZES_LEAST
from cadge_analysis.stats.floors import Floor, FloorKey
from cadge_analysis.stats.hindrance import HINDERED_SHARE, WAKE_NS, WAKE_TIMES
from cadge_analysis.stats.intervals import TAIL_SAMPLES, rank_of_interval
from cadge_results import PatternFile
from cadge_results.point import Value

Chosen = Mapping[tuple[str, str], Collection[Value]]
"""By pattern and parameter: the values that were planned."""


def _ranked(patterns: Mapping[str, PatternFile], chosen: Chosen) -> str:
    """Return by which values layers are ranked, and which of those that were planned stand beside."""
    by: dict[tuple[str, str, str], list[str]] = {}
    for pattern, file in patterns.items():
        for name, one in file.parameters.items():
            planned = chosen.get((pattern, name), ())
            if one.ranks is None or all(value == one.ranks for value in planned):
                continue
            others = " or ".join(value for value in one.values if value != one.ranks and value in planned)
            by.setdefault((one.title, str(one.ranks), others or "any other"), []).append(file.title)
    return "".join(
        f"{words.listing(titles)}: by points with {title} {value}; those with {others} stand beside. "
        for (title, value, others), titles in by.items()
    )


_SEVERAL_ENDS = Fact(
    name="Several ends",
    text="Where several endpoints measure, times go into one histogram and rates are added. How unequally they fared "
    "says the column \u201chighest \u00f7 lowest end\u201d: in each launch every endpoint's own median or rate, the "
    "highest of them by the lowest, and of these the median over launches; 1 is an even share for each. Single "
    "endpoints' figures are in the stored launches.",
)


def _models(patterns: Mapping[str, PatternFile]) -> tuple[Fact, ...]:
    """Return how models are fitted, where a pattern's points are measured for one."""
    if all(file.fits is None for file in patterns.values()):
        return ()
    return (
        Fact(
            name="Models",
            text="LogGP by the method of PRTT(n, d, s) (Hoefler and others, IPDPS 2007). The gap from one message to "
            "the next is (PRTT(n, 0, s) \u2212 PRTT(1, 0, s)) \u00f7 (n \u2212 1): g is that of the first byte, G what "
            "each further byte adds. o_s is (PRTT(n, d, s) \u2212 PRTT(1, 0, s)) \u00f7 (n \u2212 1) \u2212 d, with a "
            "delay no shorter than the gap; o_r what it takes to take a message that lies there; L half a round trip "
            "of the smallest message less both. Lines are fitted to medians over launches by least squares of relative "
            "deviations, without negative numbers. The gap and the time one way fall apart into the fewest pieces, at "
            f"most {PIECES_MOST} of {SIZES_LEAST} sizes or more, whose lines come within {units.percent(TOLERANCE, 0)} "
            "of every size: where a piece ends the layer changes its protocol. A fit that stays further off, or a time "
            "that comes out negative, is refused with the reason. Intervals are those of a bootstrap over launches "
            "(95 %). What a fit predicts of points that it was not made from stands below it; it holds where half of "
            f"them are no more than {units.percent(TOLERANCE, 0)} off.",
        ),
    )


def _of_open_loops(patterns: Mapping[str, PatternFile]) -> str:
    """Return what service times leave open, and who says it."""
    titles = [file.title for file in patterns.values() if file.loop == "open"]
    if titles:
        return f"; how a layer behaves when requests arrive on their own is told by {words.listing(titles)}"
    return ": nothing here says how a layer behaves when requests arrive on their own"


def _floor(floors: Iterable[tuple[FloorKey, Floor]]) -> str:
    """Return how floors are found, and which of this campaign's are composed."""
    found = tuple(floors)
    if not found:
        return "No floor was measured in this campaign: nothing is divided by one."
    text = (
        "What the machine itself can do for the same bytes at the same place and in the same wait mode, "
        "measured in the same campaign by programs without a layer, which move messages one at a time. The floor "
        "at a size is the fastest of all floor programs at that size and above (for streams, the one that takes "
        "least for a message), as a program that moves more bytes can move fewer in that time; never the best "
        "launch, but the lowest median over launches. "
    )
    if composed := "; ".join(_composed(found)):
        text += (
            "It may also be composed, where that is less: one bounced line (none for streams), and the bytes at the "
            f"best copy rate that any floor program reached, round by round. Here it is so in {composed}. "
        )
    return text + (
        "References are bare exchanges that are not the best possible, such as sockets by system calls: they are "
        "shown beside, and nothing is divided by them. Blocking rows divide by blocking floors. A ratio is taken "
        "round by round, layer \u00f7 floor, where every launch of the layer has a launch of the floor in its "
        "round, and its median and interval are those of the ratios; so is the time above the floor. Otherwise "
        "the medians are divided, and the interval joins the ends of both."
    )


def _composed(found: Sequence[tuple[FloorKey, Floor]]) -> Iterator[str]:
    """Yield where floors are composed: "RPC within one host, polling, from 32 KiB on"."""
    groups: dict[tuple[int, int, str], list[tuple[int, bool]]] = defaultdict(list)
    for (place, wait, _, _, size), floor in found:
        group = words.PLACE_ORDER.index(place), words.WAIT_ORDER.index(wait), floor.case.file.title
        groups[group].append((size, floor.composed))
    for (at, how, title), sizes in sorted(groups.items()):
        composed = sorted({size for size, one in sizes if one})
        if composed:
            later = all(one for size, one in sizes if size >= composed[0])
            which = (
                f"from {units.size(composed[0])} on" if later else f"at {words.listing([*map(units.size, composed)])}"
            )
            yield f"{title} {words.PLACES[words.PLACE_ORDER[at]]}, {words.WAITS[words.WAIT_ORDER[how]]}, {which}"


def _intervals(launches: int, coverage: float) -> str:
    """Return what intervals over launches are, with the number of them that most values of the campaign have."""
    text = (
        "Order statistics: the k-th smallest and the k-th largest launch enclose the true median with a "
        "probability that follows from the binomial distribution alone, whatever the distribution of the "
        "values (David and Nagaraja, Order Statistics). "
    )
    if not coverage:
        return f"{text}One launch has no interval, and six are the fewest for one of 95\u202f%."
    k = rank_of_interval(launches)
    ends = "smallest and largest" if k == 1 else f"k = {k}"
    return (
        f"{text}Here, with {units.count_of(launches, 'launch', 'launches')}: {ends}, {units.percent(coverage)}; where "
        "a number has fewer launches the coverage stands with them in the tables of every size. These intervals are of "
        "one value, or one ratio to a floor, and not widened for their number: expect one in "
        f"{units.grouped(round(1 / (1 - coverage)))} to miss. Those of verdicts are widened."
    )


def _by_whom(own: Sequence[str]) -> str:
    """Return whose work is compared. own: layers whose library is a part of this suite."""
    text = (
        "What joins each layer's library to this suite, the patterns and the floors are by the authors of this suite, "
    )
    if own:
        text += f"and so is the whole library of {words.listing(list(map(words.isolated, own)))}. "
    else:
        text += "and none of the libraries is. "
    return text + (
        "No other library's authors had a part in how it is used here; the code is that of the revision under "
        "\u201cProvenance\u201d."
    )


def method(
    patterns: Mapping[str, PatternFile],
    verdicts: tuple[Fact, ...],
    *,
    several_ends: bool,
    launches: tuple[int, float] = (1, 0.0),
    floors: Iterable[tuple[FloorKey, Floor]] = (),
    own: Sequence[str] = (),
    chosen: Chosen | None = None,
) -> tuple[Fact, ...]:
    """Return the section on method; what is timed is said for the patterns that were planned.

    verdicts: how they are made.
    several_ends: somewhere several endpoints measured the same.
    launches: how many most numbers are of, and how often their interval holds the true median.
    own: layers whose library is a part of this suite.
    chosen: what was planned.
    """
    return (
        Fact(
            name="What is timed",
            text="Each pattern's section begins with what its time or rate spans. Round trips are whole and are never "
            "halved. Every operation of a closed loop is timed, and none starts before an earlier one of its slot "
            f"has ended, so these are service times{_of_open_loops(patterns)}.",
        ),
        *_models(patterns),
        Fact(
            name="Ranked by",
            text=f"{_ranked(patterns, chosen or {})}Verdicts, ties, answers and figures are of points that rank; a "
            "floor made the same choices as the point that it divides.",
        ),
        Fact(
            name="Replication",
            text="A launch is fresh processes, one an endpoint, that try each of its points once, in shuffled order; "
            "launches of all layers are interleaved at random. From each launch comes one number, its own "
            "median or its bytes \u00f7 time. The report shows the median of these numbers over launches, "
            "never the best one.",
        ),
        Fact(
            name="Intervals",
            text=_intervals(*launches),
        ),
        Fact(
            name="Tails",
            text="p99 and p99.9 are taken from the histograms of all launches added together (percentiles are "
            f"never averaged), and only where at least {TAIL_SAMPLES} samples lie beyond: 10\u202f000 samples for "
            "p99, 100\u202f000 for p99.9. Under them stands the range of the launches' own values, which is a "
            "description and not an interval. A quantile is the upper end of its histogram bucket (three "
            "significant digits), by HdrHistogram's rule.",
        ),
        *([_SEVERAL_ENDS] if several_ends else []),
        Fact(
            name="Floor",
            text=_floor(floors),
        ),
        *verdicts,
        Fact(
            name="What the processors did",
            text="CPU time: user and system time of each process over the measured loop, as the kernel accounts it: "
            "totals of all launches \u00f7 total operations (messages, for a stream). On a virtual network the "
            "receiver's kernel work runs inside the sender's call, so only the sum of both sides is fair. How much "
            "of it was user and how much system time is not available: the kernel tells these two apart by samples, "
            "a few a measurement. Switches are voluntary context switches an operation, page faults minor and major "
            "ones. System calls are counted by the kernel's tracepoint raw_syscalls:sys_enter (as root), in one launch "
            "of each point, over a loop of its own before the warm-up: a counted call takes twice as long, so none is "
            "counted while something is timed. That loop is a warm-up, closed and without a handler's work; a side "
            "that polls also calls the kernel where nothing has come. Cycles and instructions, of user and "
            "kernel, are the processor's counters over the measured loop in poll mode, where there are such counters: "
            "in block mode to count them would lengthen each switch.",
        ),
        Fact(
            name="What hinders",
            text="Around each attempt every endpoint reads how long its threads were ready to run and waited for a "
            "processor (the kernel's run-queue wait), and what the host took of their processors (steal). More than "
            f"{units.percent(HINDERED_SHARE)} of its time at either side, and the attempt is called disturbed; of a "
            f"thread that sleeps, {WAKE_TIMES} times the median wait a wake of all launches of the same point, and "
            f"{WAKE_NS / 1000} \u00b5s at least, belong to waking. Such attempts "
            "are counted, by layer and in each row, and never dropped; where launches were repeated because of "
            "them, the report says how many.",
        ),
        Fact(
            name="State of the machine",
            text="Before, between and after its points, two processes of every launch measure without the layer how "
            "long a cache line takes to the other and back (within one host), how long a copy of 64\u202fKiB, and how "
            "long a reading of the clock. The values are stored; no result is divided, dropped or adjusted by them: in "
            "five campaigns on a virtual machine of two processors, what they explained of the variance between "
            "launches of calls within a host lay between nothing and half, led now by the line and now by the clock.",
        ),
        Fact(
            name="Who does the work",
            text="Direct: completes while the target's processes are stopped. Library: the target's library has to"
            " run. Cadge: supplied by this suite on top of the library. An RPC is native where the layer has "
            "calls and replies of its own, and emulated where it is made of messages. Poll and block are what"
            " the layer was asked to do; a blocking row that did not sleep is unsound.",
        ),
        Fact(name="By whom", text=_by_whom(own)),
        Fact(
            name="Defaults",
            text="Libraries run with their own defaults; only the network device is given to them. A changed "
            "setting makes a second, labelled entry.",
        ),
        Fact(
            name="Chosen by a reader",
            text="\u201cCompare by\u201d, where scripts run, fills the short tables with the p90, which the "
            "tail's figures have as well, or with the p99 or p99.9 of the tables of all columns, and divides the "
            "medians of these by those of another layer, without interval or verdict. Figures, answers and ranks do "
            "not change with it.",
        ),
        Fact(
            name="Units",
            text="\u00b5s; MB/s = 10\u2076 bytes a second; KiB and MiB are 2\u00b9\u2070 and 2\u00b2\u2070 bytes. "
            "Three significant digits.",
        ),
    )
