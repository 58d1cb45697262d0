# SPDX-License-Identifier: BSD-3-Clause
"""No link of a page is dead, and each way in which one can be is seen."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ci import check_links

from cadge_analysis import messages

ROOT = Path(__file__).resolve().parents[2]
PAGE = """# A page, of `code`

## Twice
## Twice
<a id="here"></a>
"""


def test_no_link_of_this_checkout_is_dead() -> None:
    assert list(check_links.Pages(ROOT).dead()) == []


def test_there_are_pages_and_links() -> None:
    page = check_links.read((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "CONTRIBUTING.md" in {link.target for link in page.links}
    assert {"four-jobs", "what-the-numbers-mean"} <= page.anchors


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("To add a layer", "to-add-a-layer"),
        ("results: formats and the store", "results-formats-and-the-store"),
        ("8 B, p99.9 & _more_", "8-b-p999--_more_"),
        ("Größe + µs", "größe--µs"),
    ],
)
def test_anchors_are_those_of_forges(heading: str, anchor: str) -> None:
    assert check_links.read(f"# {heading.replace('_more_', chr(92) + '_more_')}\n").anchors == {anchor}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[a](other.md)", ""),
        ("[a](other.md#a-page-of-code) [b](other.md#twice) [c](other.md#twice-1) [d](other.md#here)", ""),
        ("[a](../x.c) [b](../x.c#L2) [c](..) [d](sub%20folder/y.txt) ![e](../x.c)", ""),
        ("# Own\n[a](#own) [b](https://example.org/nowhere#x) [c](mailto:a@example.org)", ""),
        ("`[a](nowhere.md)`\n\n```\n[a](nowhere.md)\n```\n", ""),
        ("[a](nowhere.md)", "docs/nowhere.md is not there"),
        ("[a](untracked.md)", "docs/untracked.md is not there, or not tracked"),
        ("[a](other.md#thrice)", "docs/other.md has no heading with the anchor thrice"),
        ("[a](other.md#twice-2)", "no heading"),
        ("[a](#own)", "docs/page.md has no heading"),
        ("[a](/docs/other.md)", "begins with /"),
        ("[a](../x.c#L3)", "x.c has 2 lines"),
        ("[a](../x.c#main)", "x.c is no page"),
        ("[a](..#L1)", ". is no page"),
        ("[a][b]\n\n[b]: nowhere.md\n", "docs/nowhere.md is not there"),
        ("| a |\n|---|\n| ![a](nowhere.png) |\n", "docs/nowhere.png is not there"),
        ('<img src="nowhere.png">\n', "docs/nowhere.png is not there"),
        ('words <a href="nowhere.md">a</a>\n', "docs/nowhere.md is not there"),
        ("[a](../../outside.md)", "../outside.md is not there"),
        ("See *Answer*, [*An answer, and more*](../analysis/READING.md#an-answer-and-more), and *no name*.", ""),
        ("Section *Found* is first.", "explains no section of a report so called"),
        ("See *An answer*.", "explains no section"),
        ("See *An answer,\nand more*.", ""),
        ("**A bold one** and `*Found*`", ""),
    ],
)
def test_a_dead_link_is_found(tmp_path: Path, text: str, why: str) -> None:
    for name, content in {
        "docs/page.md": text,
        "docs/other.md": PAGE,
        "docs/sub folder/y.txt": "",
        "analysis/READING.md": "# Reading\n## Answer\n*Withheld* means nothing.\n## An answer, and more\n",
        "x.c": "int a;\nint b;\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    (tmp_path / "docs/untracked.md").write_text("")
    found = [one for one in check_links.Pages(tmp_path).dead() if one.page == "docs/page.md"]
    assert len(found) == bool(why)
    for one in found:
        assert why in one.why


def test_pages_in_which_emphasis_is_something_else_are_there() -> None:
    for name in check_links.OTHER_EMPHASIS:
        assert check_links.read((ROOT / name).read_text(encoding="utf-8")).emphasised, name


def test_what_a_report_says_of_its_sections_names_sections() -> None:
    """`under “Floors”` in a sentence of a report: a heading of its templates, or the title of a region."""
    source = ROOT / "analysis/src/cadge_analysis"
    texts = [
        path.read_text(encoding="utf-8") for end in ("py", "j2", "yml") for path in sorted(source.rglob(f"*.{end}"))
    ]
    headings = {
        name
        for text in texts
        for name in re.findall(r"<h2[^>]*>([^<{]+)</h2>|Heading\(\d, \"([^\"]+)\"|title=\"([^\"]+)\"|title: (.+)", text)
        for name in name
    }
    for text in texts:
        for say, name in re.findall(r'^(\w+) = partial\(messages\.say, "(\w+)"\)$', text, re.MULTILINE):
            headings |= {messages.catalogue(name)[key] for key in re.findall(rf'title={say}\("([\w.]+)"\)', text)}
    said = {name for text in texts for name in re.findall(r"under (?:\\u201c|\u201c)(.+?)(?:\\u201d|\u201d)", text)}
    assert len(said) > 2
    assert said <= headings
