# SPDX-License-Identifier: BSD-3-Clause
"""Warnings: of one kind as one, the widest first, each with its size, and what stops in a line above the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report
from cadge_analysis.blocks.model import Remark, Span
from cadge_analysis.messages import say
from cadge_analysis.page.viewmodel import Finding
from cadge_analysis.page.warned import warned


def finding(head: str, *, kind: str = "refused", share: float = 0.0, stops: bool = False) -> Finding:
    spans = (Span(head, strong=True), Span(" within one host."))
    return Finding(kind=kind, serious=stops, spans=spans, share=share, stops=stops)


def test_the_widest_stands_first_and_what_stops_before_all() -> None:
    narrow, wide = (Remark(serious=True, title=f"{share}", text="", share=share) for share in (0.1, 0.9))
    note = Remark(serious=False, title="note", text="", share=1.0)
    stop = Remark(serious=True, title="stop", text="", share=0.01, stops=True)
    found = warned([narrow, note, wide, stop], [], nothing_found="Nothing.")
    assert [one.title for one in found.warnings] == ["stop", "0.9", "0.1"]
    assert [one.title for one in found.notes] == ["note"]
    assert [one.title for one in found.stops] == ["stop"]
    assert [one.anchor for one in (*found.warnings, *found.notes)] == [f"warning-{n}" for n in (1, 2, 3, 4)]
    assert found.headline == f"{messages.say('remarks', 'warned.reserve')}: 1 serious problem, 2 warnings, 1 note"
    assert found.nothing_found == "Nothing."


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
    found = warned(
        [], [finding("a"), finding("b", share=0.5), finding("c", kind="slow host", stops=True)], nothing_found="N"
    )
    assert [(one.title, one.text, one.items) for one in found.warnings] == [("c", "within one host.", ())]
    assert [(one.title, one.items, one.share) for one in found.notes] == [
        ("2 layers without their transport", ("a within one host.", "b within one host."), 0.5)
    ]
    assert found.nothing_found == ""
    assert warned([], [], nothing_found="N").headline == say("remarks", "warned.none", valid="Valid")


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
        (say("remarks", "virtual.titles.network"), "every number"),
        ("Warm-up cut short", f"54{thin}% of attempts did not settle; 4 KiB: 100{thin}%"),
        ("3 attempts disturbed", f"12.5{thin}% of 24 attempts"),
    ]
