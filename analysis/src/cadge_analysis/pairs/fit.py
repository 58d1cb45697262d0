# SPDX-License-Identifier: BSD-3-Clause
"""Which host or link is slow, from one value for each ordered pair of hosts.

The logarithm of a pair's time is taken as a middle, what its first host adds, what its second host adds, and a rest:
median polish (Tukey, Exploratory Data Analysis, 1977, ch. 11), which a few slow pairs cannot pull along. A host is slow
where what it adds is more than LEAST and more than TIMES robust standard deviations (the median absolute deviation,
times 1.4826 for a normal distribution) above the middle of all, by the larger of two scales: that of all hosts, and the
standard error that the rest gives a median of its pairs. What is slow over one layer alone is not named: a host or a
cable is slow for all.

A link has one pair to show for it, and noise has long tails. So its rest is more than LEAST and LINK_TIMES deviations
over each layer, of which PLAIN is enough. The mean of its rests is more than TIMES by the root of the number of layers,
in deviations of such means.

The same rule finds what stalls or loses packets, from the mean time of a call: a median does not see a call in fifty
that waits for a packet to be sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import fmean, median
from typing import Literal, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
Pair = tuple[str, str]
"""Two hosts in order: the first has endpoint 0, which sends first."""

LEAST = log(1.1)
"""What is slower by less is nobody's concern."""
PLAIN = log(1.33)
"""What is enough of a link over each layer, however many deviations it is."""
STALLS = log(2.0)
"""What takes less on average does not stall. A packet that TCP has to send again takes 200 ms, and a call 10 µs."""
TIMES = 5.0
LINK_TIMES = 8.0
NORMAL = 1.4826
"""Standard deviations in a median absolute deviation, of a normal distribution."""
MEDIAN = 1.2533
"""Standard errors of a mean in one of a median, of a normal distribution."""
HOSTS_LEAST = 4
"""Of fewer hosts no one can say which of them is off."""
TURNS = 50
ENOUGH = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFit:
    """Logarithms: the middle of all pairs, what each host adds as first and as second of a pair, and what is left."""

    middle: float
    first: Mapping[str, float]
    second: Mapping[str, float]
    rest: Mapping[Pair, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPart:
    """A host as `first` or `second` of its pairs or as both, or a link, and how many times the others' time it takes.

    pairs: how many of a host's pairs are slower than the middle, of so many.
    """

    part: Literal["first", "second", "host", "link"]
    hosts: tuple[str, ...]
    times: float
    slower: int
    pairs: int


def fit(times: Mapping[Pair, float]) -> PairFit:
    """Fit times above zero, in any unit; pairs that are missing are left out."""
    rest = {pair: log(value) for pair, value in times.items()}
    middle = median(rest.values())
    rest = {pair: value - middle for pair, value in rest.items()}
    firsts: dict[str, float] = dict.fromkeys((pair[0] for pair in rest), 0.0)
    seconds: dict[str, float] = dict.fromkeys((pair[1] for pair in rest), 0.0)
    for _ in range(TURNS):
        moved = 0.0
        for at, effects in ((0, firsts), (1, seconds)):
            for host in effects:
                own = [pair for pair in rest if pair[at] == host]
                step = median(rest[pair] for pair in own)
                effects[host] += step
                moved = max(moved, abs(step))
                for pair in own:
                    rest[pair] -= step
            centre = median(effects.values())
            middle += centre
            for host in effects:
                effects[host] -= centre
        if moved < ENOUGH:
            break
    return PairFit(middle=middle, first=firsts, second=seconds, rest=rest)


def scale(values: Iterable[float]) -> float:
    """Return a robust standard deviation."""
    every = list(values)
    middle = median(every)
    return NORMAL * median(abs(value - middle) for value in every)


def slow_for_all(by_layer: Collection[Mapping[Pair, float]], least: float = LEAST) -> list[SlowPart]:
    """Return the hosts and links that are slow over every layer, the slowest first, with the layers' middle.

    None where hosts are too few to tell.
    """
    if not by_layer or len({host for times in by_layer for pair in times for host in pair}) < HOSTS_LEAST:
        return []
    fits = [fit(times) for times in by_layer]
    found: dict[tuple[str, tuple[str, ...]], list[SlowPart]] = {}
    for times, fitted in zip(by_layer, fits, strict=True):
        for one in _slow_hosts(times, fitted, least):
            found.setdefault((one.part, one.hosts), []).append(one)
    every = [
        replace(of[0], times=median(one.times for one in of), slower=min(one.slower for one in of))
        for of in found.values()
        if len(of) == len(by_layer)
    ]
    return sorted([*every, *_slow_links(fits, least)], key=lambda one: (-one.times, one.hosts))


def _slow_links(fits: Sequence[PairFit], least: float) -> Iterator[SlowPart]:
    """Yield the links that are slow over every layer; a pair that some layer lacks is none."""
    rests = {pair: [one.rest[pair] for one in fits] for pair in fits[0].rest if all(pair in one.rest for one in fits)}
    together = {pair: fmean(of) for pair, of in rests.items()}
    enough = TIMES / sqrt(len(fits)) * scale(together.values())
    asked = [max(least, min(PLAIN, LINK_TIMES * scale(one.rest.values()))) for one in fits]
    for pair, of in rests.items():
        if together[pair] > enough and all(rest > most for rest, most in zip(of, asked, strict=True)):
            yield SlowPart(part="link", hosts=pair, times=median(map(exp, of)), slower=1, pairs=1)


def stalled_for_all(by_layer: Collection[Mapping[Pair, float]]) -> list[SlowPart]:
    """Return the hosts and links that stall over every layer, from mean times of a call.

    A call goes both ways, so a host is one part, and a link too. Links of such a host are not named: when its packets
    are lost is chance, and differs from pair to pair.
    """
    found: dict[frozenset[str], list[SlowPart]] = {}
    for one in slow_for_all(by_layer, STALLS):
        found.setdefault(frozenset(one.hosts), []).append(one)
    hosts = {host for key in found if len(key) == 1 for host in key}
    return [
        SlowPart(
            part="link" if len(key) > 1 else "host",
            hosts=of[0].hosts,
            times=median(one.times for one in of),
            slower=sum(one.slower for one in of),
            pairs=sum(one.pairs for one in of),
        )
        for key, of in found.items()
        if len(key) == 1 or not key & hosts
    ]


def _slow_hosts(times: Mapping[Pair, float], found: PairFit, least: float) -> Iterator[SlowPart]:
    """Yield the hosts that are slow over one layer."""
    noise = scale(found.rest.values())
    whole = {pair: log(value) - found.middle for pair, value in times.items()}
    for at, effects in ((0, found.first), (1, found.second)):
        for host, effect in _beyond(effects, least, MEDIAN * noise / sqrt(max(1, len(times) / len(effects)))):
            own = [pair for pair in times if pair[at] == host]
            yield SlowPart(
                part="first" if at == 0 else "second",
                hosts=(host,),
                times=exp(effect),
                slower=sum(1 for pair in own if whole[pair] > least),
                pairs=len(own),
            )


def _beyond(effects: Mapping[_Key, float], least: float, least_scale: float) -> list[tuple[_Key, float]]:
    """Return those of some effects that stand out above their middle, which is about 0."""
    most = max(least, TIMES * max(least_scale, scale(effects.values())))
    return [(key, effect) for key, effect in effects.items() if effect > most]
