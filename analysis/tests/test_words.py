# SPDX-License-Identifier: BSD-3-Clause
"""A report has no more words than a reader takes in: of a campaign like the default sweep's, page by page."""

from __future__ import annotations

import pytest
import synthetic
from wordcount import MOST, TOP, Words, counted, words_of

from cadge_analysis import report
from cadge_analysis.page import pages
from cadge_analysis.stats.load import read

SIZES = (8, 64, 1024, 4096, 16384, 65536, 262144, 1048576)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Words]:
    options = synthetic.Options(
        sizes=SIZES, waits=("poll",), patterns=(("rpc", 1), ("pingpong", 1), ("stream", 16)), launches=9, samples=200,
        touches=("write+read", "none"), twins=("native-ofi",),
    )  # fmt: skip
    made = report.page_of(read(synthetic.make(tmp_path_factory.mktemp("words"), options)))
    main = report.html(made)
    parts = pages.split(made, "report.html", len(main))[1]
    return {"report": counted(main)} | {name: counted(report.html(one)) for name, one in parts.items()}


def test_a_report_of_the_default_sweep_is_within_its_budget(found: dict[str, Words]) -> None:
    assert len(found) == 4, "a page a pattern"
    main, *parts = found.values()
    assert main.total <= MOST["report"]
    assert main.screen <= MOST["first screen"]
    assert max(one.total for one in parts) <= MOST["page of a pattern"]
    assert sum(one.total for one in found.values()) <= MOST["all pages"]


def test_what_is_folded_counts_and_cells_count_apart() -> None:
    page = counted(
        '<html><head><meta name="part-of" content="r.html"><title>one two</title><style>no</style></head><body>'
        '<section id="answer"><p>three 4 5KiB</p><details><summary>four</summary><p>five</p></details></section>'
        '<section id="x"><svg role="img" aria-label="six"><title>seven</title><text>8 µs</text></svg>'
        "<table><caption>nine</caption><tr><td title='not'>not this</td></tr></table></section>"
        "<script>no</script></body></html>"
    )
    assert page.sections == {TOP: 2, "answer": 3, "x": 4}
    assert (page.total, page.screen, page.cells["x"], page.part_of) == (9, 4, 3, "r.html")


@pytest.mark.parametrize(
    ("text", "often"), [("a b", 2), ("1 2.5 64KiB 3\u00d7", 0), ("(one) \u201ctwo\u201d \u2013", 2)]
)
def test_a_word_begins_with_a_letter(text: str, often: int) -> None:
    assert words_of(text) == often
