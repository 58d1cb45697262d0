# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a campaign, a sentence each: slow hosts, and layers that went another way than one would think."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from cadge_analysis import messages, units, words
from cadge_analysis.blocks.model import SERIOUS, Item, Remark, Span
from cadge_analysis.draw.renderer import RENDERER
from cadge_analysis.page.parts.provenance import NODE_FACTS, plain
from cadge_analysis.stats.load import Dataset
from cadge_analysis.stats.slow_hosts import WAITS, SlowUnit, Symptom, slow_hosts
from cadge_analysis.stats.steered import USUAL, forced, schedulings, settings_files
from cadge_analysis.stats.transports import PathDeviation, strayed

say = partial(messages.say, "findings")

SAID_MOST = 160
USED_MOST = 64
"""Characters of a reason, and of a path that a library stated; the whole of both stands in tables below."""
PEERS_NAMED = 3
REASONS_MOST = 8
OF_SPEED = frozenset(
    {"cpu", "cores", "governor", "frequency", "quota", "mitigations", "virtualisation", "clocksource", "thp"}
)
"""Facts of a host that may be why it is slow."""
NOTHING = say("findings.nothing")


def findings(data: Dataset) -> tuple[Remark, ...]:
    """Return what is wrong, the most serious first. The text of each goes on behind its title: `warned` makes two."""
    ways = strayed(data)
    found = [
        *(_shared(one) for one in ways if one.kind == "strayed"),
        *(_slow(one, data) for one in slow_hosts(data)),
        *_steered(data),
        *_elsewhere([one for one in ways if one.kind == "elsewhere"]),
        *(_shared(one) for one in ways if one.kind not in ("strayed", "elsewhere")),
    ]
    rest = len(found) - REASONS_MOST
    if rest > 1:
        more = say("findings.more", rest=rest)
        found = [*found[:REASONS_MOST], Remark(kind="more", serious=False, title=more, text="")]
    return tuple(sorted(found, key=lambda one: not one.serious))


def told(wrong: Sequence[Remark], changed: Sequence[Item] = ()) -> tuple[Item, ...]:
    """Return findings as they are to be read: what is serious, then what an earlier campaign says, then notes."""
    items = [
        Item(kind=one.kind, role=SERIOUS if one.serious else "", spans=(Span(one.title, strong=True), Span(one.text)))
        for one in wrong
    ]
    serious = [one for one in items if one.role]
    return (*serious, *changed, *(one for one in items if not one.role))


def no_pictures() -> tuple[Remark, ...]:
    """Return a finding where nothing could be drawn for this page."""
    trouble = RENDERER.trouble
    if not trouble:
        return ()
    text = say("findings.pictures_trouble", trouble=trouble)
    return (Remark(kind="pictures", serious=True, title=say("findings.no_pictures"), text=text),)


# ---- what was forced from outside ----

HOW = {one: say(f"findings.how.{one}") for one in ("preloaded", "mapped", "loaded")}


def _steered(data: Dataset) -> Iterator[Remark]:
    """Yield what steered libraries and is in no setting of the sweep."""
    for file in settings_files(data):
        where = units.listing([words.isolated(host) for host in file.hosts])
        state = "unknown" if file.packaged is None else "differs"
        sets = " " + say(f"findings.package_{state}", where=where, path=file.path, lines=file.lines)
        yield _finding("steered", say("findings.settings_file"), sets, serious=file.packaged is False)
    for one in forced(data):
        said = f" in {units.grouped(one.launches)} of {units.count_of(one.of, 'launch', 'launches')}: {one.file} "
        said += say("findings.library_effect", how=HOW[one.how])
        yield _finding("steered", say("findings.forced_library"), said, serious=True)
    ways = Counter(schedulings(data))
    for way, often in ways.items():
        if way != USUAL:
            said = f" {way}, for {units.grouped(often)} of {units.count_of(ways.total(), 'endpoint')}."
            yield _finding("steered", say("findings.scheduled"), said, serious=True)


# ---- slow hosts ----


def _slow(slow: SlowUnit, data: Dataset) -> Remark:
    who = f"Host {words.isolated(slow.host)} is slow"
    if slow.processor is not None:
        who = say("findings.slow_processor", processor=slow.processor, host=words.isolated(slow.host))
    text = f" beside {units.listing([words.isolated(one) for one in slow.beside])}: "
    text += "; ".join(_symptom(symptom, one_other=len(slow.beside) == 1) for symptom in slow.symptoms)
    text += say("findings.slow_numbers")
    if slow.processor is None:
        apart = list(_facts_apart(slow, data))
        if apart:
            text += " " + say("findings.host_differs", apart=apart)
    share = max(symptom.often / symptom.launches for symptom in slow.symptoms)
    return Remark(kind="slow host", serious=True, title=who, text=text, share=share, stops=True)


def _symptom(symptom: Symptom, *, one_other: bool) -> str:
    others = "the other" if one_other else "the others"
    launches = f"in {units.grouped(symptom.often)} of {units.count_of(symptom.launches, 'launch', 'launches')}"
    ratio = units.times(symptom.ratio)
    if symptom.what == WAITS:
        here, there = (units.percent(share, 0) for share in (symptom.here, symptom.others))
        busy = say("findings.host_busy", here=here, others=others, there=there)
        return f"{busy} {say('findings.host_takes', ratio=ratio)} {say('findings.host_rest', launches=launches)}"
    here, there = (units.sig3(value) for value in (symptom.here, symptom.others))
    slower = say("findings.host_slower", what=words.PROBES[symptom.what], here=here, others=others, there=there)
    return f"{slower} {ratio} as long ({launches})"


def _facts_apart(slow: SlowUnit, data: Dataset) -> Iterator[str]:
    """Yield facts of a slow host that no other host of the campaign has."""
    mine = next((node for node in data.nodes if node.host == slow.host), None)
    others = [node for node in data.nodes if node.host != slow.host]
    for name, title in NODE_FACTS:
        if name in OF_SPEED and mine is not None and others:
            own, theirs = plain(getattr(mine, name)), {plain(getattr(node, name)) for node in others}
            if own not in theirs:
                yield say("findings.host_fact", title=title, own=own, theirs=" | ".join(sorted(theirs)))


# ---- paths ----


def _shared(way: PathDeviation) -> Remark:
    """Return the finding with the share of the layer's attempts that it touches."""
    return replace(_went(way), share=way.often / way.of if way.of else 0.0)


def _went(way: PathDeviation) -> Remark:
    who, where = words.isolated(way.series.label), words.PLACES[way.place]
    often = f"{units.grouped(way.often)} of {units.count_of(way.of, 'attempt')}"
    have = "has" if way.often == 1 else "have"
    if way.kind == "apart":
        return _apart(way)
    if way.kind == "changed":
        said = " " + say("findings.path_changed", where=where, said=clipped(way.said))
        return _finding("wrong transport", f"{who} changed its path", said, serious=True, stops=True)
    if way.kind == "strayed":
        said = clipped(way.said)
        if way.other:
            said = clipped(way.said, USED_MOST)
            said = say("findings.asked_and_used", other=way.other, medium=MEDIA[way.medium], said=said)
        said = " " + say("findings.refused_attempts", where=where, said=said, often=often)
        return _finding("wrong transport", say("findings.another_way", who=who), said, serious=True)
    if way.kind == "unsound":
        said = f" {where}, and {often} {have} no number: {clipped(way.said)}."
        return _finding("unsound", say("findings.check_failed", who=who), said)
    said = f" {where}, and {often} {'was' if way.often == 1 else 'were'} not made: {clipped(way.said)}."
    return _finding("refused", f"{who} had no transport", said)


def _elsewhere(ways: Sequence[PathDeviation]) -> Iterator[Remark]:
    """Yield one sentence a place: what passes by beside a sweep is seen with whatever is measured then."""
    for place in dict.fromkeys(way.place for way in ways):
        here = [way for way in ways if way.place == place]
        names = list(dict.fromkeys(words.isolated(way.series.label) for way in here))
        named = names[:PEERS_NAMED] + (
            [f"{units.grouped(len(names) - PEERS_NAMED)} more"] if names[PEERS_NAMED:] else []
        )
        refused = units.count_of(sum(way.often for way in here), "attempt")
        said = clipped(here[0].said.removeprefix("counters: "))
        text = " " + say("findings.stray_bytes", place=words.PLACES[place], layers=named, said=said, refused=refused)
        yield _finding("wrong transport", say("findings.stray_title"), text, serious=True)


def _apart(way: PathDeviation) -> Remark:
    where = words.PLACES[way.place]
    named = [words.isolated(peer) for peer in way.peers[:PEERS_NAMED]]
    if len(way.peers) > PEERS_NAMED:
        named.append(f"{units.grouped(len(way.peers) - PEERS_NAMED)} more")
    asked = any("transport" in name or name.startswith("env.") for name, _ in way.series.settings)
    end = say("findings.setting_asks") if asked else "."
    peers = say("findings.peers", layers=named, medium=MEDIA[way.other])
    said = f" {where}: {MEDIA[way.medium]}, where {peers}{end}"
    return _finding(
        "wrong transport",
        say("findings.unlike_peers", layer=words.isolated(way.series.label)),
        said,
        serious=not asked,
    )


def _finding(kind: str, head: str, said: str, *, serious: bool = False, stops: bool = False) -> Remark:
    return Remark(kind=kind, serious=serious, title=head, text=said, stops=stops)


MEDIA = {one: say(f"findings.media.{one}") for one in ("memory", "loopback", "network", "process", "unknown")}


def clipped(text: str, most: int = SAID_MOST) -> str:
    """Return a text without the end that a sentence has no room for."""
    text = text.rstrip(".")
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} \u2026"
