# SPDX-License-Identifier: BSD-3-Clause
"""Warnings: of one kind as one, the widest first, each with its size, and what stops in a line above the answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report
from cadge_analysis.blocks.make import every
from cadge_analysis.blocks.model import Remark, Remarks, Span, Text
from cadge_analysis.messages import say
from cadge_analysis.page.beside import _remarks
from cadge_analysis.page.parts.remarks import _floors, _paced
from cadge_analysis.page.parts.warned import caution, headline, validity, warned
from cadge_analysis.stats.compare import Row
from cadge_analysis.stats.load import Dataset
from cadge_analysis.versus.against import SideComparison


def finding(head: str, *, kind: str = "refused", share: float = 0.0, stops: bool = False) -> Remark:
    return Remark(kind=kind, serious=stops, title=head, text=" within one host.", share=share, stops=stops)


def test_the_widest_stands_first_and_what_stops_before_all() -> None:
    narrow, wide = (Remark(serious=True, title=f"{share}", text="", share=share) for share in (0.1, 0.9))
    note = Remark(serious=False, title="note", text="", share=1.0)
    stop = Remark(serious=True, title="stop", text="", share=0.01, stops=True)
    found = warned([narrow, note, wide, stop], [])
    assert [one.title for one in found] == ["stop", "0.9", "0.1", "note"]
    assert [one.anchor for one in found] == [f"warning-{n}" for n in (1, 2, 3, 4)]
    (line,) = caution(found)
    links = [(one.text, one.href) for one in line.spans if one.href]
    assert links == [("stop", "#warning-1"), ("0.9", "#warning-2"), ("0.1", "#warning-3")]
    assert caution((note,)) == ()
    shown = [one.remarks for one in every((validity("", found),)) if isinstance(one, Remarks)]
    assert shown == [found[:3], found[3:]]
    assert headline(found) == f"{messages.say('remarks', 'warned.reserve')}: 1 serious problem, 2 warnings, 1 note"
    assert Text((Span("Nothing."),), "dim nothing") in validity("", found, "Nothing.").blocks


@pytest.mark.parametrize(
    ("text", "items", "told"),
    [
        (
            "",
            ("To see it, measure without it.", "A library was there."),
            "To see it, measure without it. A library was there.",
        ),
        ("They show no ratio:", ("one reason", "another"), "They show no ratio: one reason; another"),
        ("So it is.", ("one",), "So it is. one"),
        ("Alone", (), "Alone"),
    ],
)
def test_sentences_of_a_remark_follow_each_other_without_a_semicolon(
    text: str, items: tuple[str, ...], told: str
) -> None:
    assert Remark(serious=True, title="t", text=text, items=items).told == told


def test_findings_of_a_kind_are_one() -> None:
    first, *rest = warned([], [finding("a"), finding("b", share=0.5), finding("c", kind="slow host", stops=True)])
    assert (first.title, first.text, first.items) == ("c", "within one host.", ())
    assert [(one.title, one.items, one.share) for one in rest] == [
        ("2 layers without their transport", ("a within one host.", "b within one host."), 0.5)
    ]
    assert headline(()) == say("remarks", "warned.none", valid="Valid")


@pytest.mark.spare
def test_sizes_of_warnings_by_hand(tmp_path: Path) -> None:
    """Two layers, two sizes, six launches: 24 attempts; 4 KiB never settles, and 8 B once; 3 are disturbed."""

    def unsteady(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        if point["subject"]["kind"] != "layer":
            return
        known = synthetic.flat(point)
        attempt["warmup"]["steady"] = known["size"] == 8 and (known["layer"], number) != ("native-ucx", 2)
        disturbed = known["size"] == 8 and known["layer"] == "sockets-tcp" and number < 3
        for use in attempt["cpu"]:
            use |= {"wall_ns": 10_000_000, "run_wait_ns": 5_000_000 if disturbed else 0, "stolen_ns": 0}

    options = synthetic.Options(
        layers=("sockets-tcp", "native-ucx"),
        sizes=(8, 4096),
        places=("within",),
        waits=("poll",),
        patterns=(("rpc", 1),),
        samples=200,
        troubles=False,
        virtual=False,
        attempt_hook=unsteady,
    )
    report.build(synthetic.make(tmp_path / "store", options).path, tmp_path / "r.html")
    banner = pagereader.read((tmp_path / "r.html").read_text()).one("section", class_="banner")
    heads = [fold.one("summary") for fold in banner.all("details", class_="serious")]
    thin = "\u202f"
    assert [(head.one("b").text, head.one("span").text) for head in heads] == [
        ("Warm-up cut short", f"54{thin}% of attempts did not settle; 4 KiB: 100{thin}%"),
        ("3 attempts disturbed", f"12.5{thin}% of 24 attempts"),
    ]


@pytest.mark.parametrize(
    ("reasons", "some", "items"),
    [
        (("no copy", "no copy", None), 2, ()),
        (("no copy", "no bounce", "no copy"), 3, ("no bounce", "no copy")),
        ((None,), 0, None),
    ],
)
def test_rows_without_a_floor_are_counted_with_all_their_reasons(
    reasons: tuple[str | None, ...], some: int, items: tuple[str, ...] | None
) -> None:
    """One reason stands in the sentence. None: a row that has a floor."""
    rows = tuple(
        SimpleNamespace(beats_floor=False, ratio=1.0 if reason is None else None, reason=reason or "")
        for reason in reasons
    )
    found = list(_floors(cast("tuple[Row, ...]", rows), cast("Dataset", None)))
    assert len(found) == bool(some)
    for one in found:
        assert one.share == some / len(rows)
        assert one.items == (items or ())
        assert (one.text == say("remarks", "without_floor.several")) == bool(items)


@pytest.mark.parametrize(
    ("given", "titles"),
    [
        ({}, {}),
        ({"drift_is_unknown": True}, {"The machine's drift": True}),
        ({"drift_is_unknown": True, "usual": (1.0,)}, {"The machine's drift": False}),
        ({"drift_is_unknown": True, "withheld": "few launches"}, {"Verdicts are withheld": True}),
        ({"conditions": (SimpleNamespace(other_machine=False),)}, {}),
        (
            {"conditions": (SimpleNamespace(other_machine=False), SimpleNamespace(other_machine=True))},
            {"Other machines": True},
        ),
        ({"refused": {"no device": 2, "no room": 1}}, {"3 points refused": True}),
    ],
)
def test_what_limits_a_comparison(given: dict[str, object], titles: dict[str, bool]) -> None:
    """Titles, and whether they are serious."""
    nothing = dict.fromkeys(("conditions", "refused", "drift", "left", "usual"), ())
    usual = {"across_hosts": False, "withheld": "", "drift_is_unknown": False, "margin": 0.05}
    found = _remarks(cast("SideComparison", SimpleNamespace(**(nothing | usual | given))))
    assert {one.title: one.serious for one in found} == titles


@pytest.mark.parametrize(
    ("paths", "layers"),
    [
        ((("sockets-uring", "between", "bbr"), ("sockets-tcp", "between", "bbr")), ["sockets-tcp", "sockets-uring"]),
        ((("sockets-tcp", "within", "bbr"), ("sockets-tcp", "between", "cubic")), []),
        ((("sockets-tcp", "between", ""),), []),
    ],
)
def test_paced_tcp_is_noted_between_hosts(paths: tuple[tuple[str, str, str], ...], layers: list[str]) -> None:
    records = [
        SimpleNamespace(
            launch=SimpleNamespace(subject=SimpleNamespace(layer=layer), place=place),
            result=SimpleNamespace(path=[SimpleNamespace(used=f"tcp; congestion control {name}")]) if name else None,
        )
        for layer, place, name in paths
    ]
    found = list(_paced(cast("Dataset", SimpleNamespace(records=records))))
    assert [one.key for one in found] == ["paced"] * bool(layers)
    assert all(layer in one.text for one in found for layer in layers)
    assert not any(one.serious for one in found)
