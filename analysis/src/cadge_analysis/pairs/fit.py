# SPDX-License-Identifier: BSD-3-Clause
"""Which host or link is slow, from one value for each ordered pair of hosts.

The logarithm of a pair's time is taken as a middle, what its first host adds, what its second host adds, and a rest:
median polish (Tukey, Exploratory Data Analysis, 1977, ch. 11), which a few slow pairs cannot pull along. A link is slow
where its rest is more than LEAST and more than TIMES robust standard deviations (the median absolute deviation, times
1.4826 for a normal distribution) above the middle of all; a host where what it adds is, by the larger of two scales:
that of all hosts, and the standard error that the rest gives a median of its pairs. What is slow over one layer alone
is not named: a host or a cable is slow for all. The same rule finds what stalls or loses packets, from the mean time of
a call: a median does not see a call in fifty that waits for a packet to be sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import median
from typing import Literal, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
Pair = tuple[str, str]
"""Two hosts in order: the first has endpoint 0, which sends first."""

LEAST = log(1.1)
"""What is slower by less is nobody's concern."""
STALLS = log(2.0)
"""What takes less on average does not stall. A packet that TCP has to send again takes 200 ms, and a call 10 µs."""
TIMES = 5.0
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
    """Return the hosts and links that are slow over every layer, the slowest first, with the layers' middle."""
    found: dict[tuple[str, tuple[str, ...]], list[SlowPart]] = {}
    for times in by_layer:
        for one in slow_parts(times, least):
            found.setdefault((one.part, one.hosts), []).append(one)
    every = [
        replace(
            of[0],
            times=median(one.times for one in of),
            slower=min(one.slower for one in of),
        )
        for of in found.values()
        if len(of) == len(by_layer)
    ]
    return sorted(every, key=lambda one: (-one.times, one.hosts))


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


def slow_parts(times: Mapping[Pair, float], least: float = LEAST) -> list[SlowPart]:
    """Return the hosts and links that are slow over one layer; none where hosts are too few to tell."""
    if len({host for pair in times for host in pair}) < HOSTS_LEAST:
        return []
    found = fit(times)
    noise = scale(found.rest.values())
    whole = {pair: log(value) - found.middle for pair, value in times.items()}
    slow = [
        SlowPart(
            part="first" if at == 0 else "second",
            hosts=(host,),
            times=exp(effect),
            slower=sum(1 for pair in own if whole[pair] > least),
            pairs=len(own),
        )
        for at, effects in ((0, found.first), (1, found.second))
        for host, effect in _beyond(effects, least, MEDIAN * noise / sqrt(max(1, len(times) / len(effects))))
        for own in [[pair for pair in times if pair[at] == host]]
    ]
    slow += [
        SlowPart(part="link", hosts=pair, times=exp(rest), slower=1, pairs=1)
        for pair, rest in _beyond(found.rest, least, noise)
    ]
    return slow


def _beyond(effects: Mapping[_Key, float], least: float, least_scale: float) -> list[tuple[_Key, float]]:
    """Return those of some effects that stand out above their middle, which is about 0."""
    most = max(least, TIMES * max(least_scale, scale(effects.values())))
    return [(key, effect) for key, effect in effects.items() if effect > most]
