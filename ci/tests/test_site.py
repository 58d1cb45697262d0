# SPDX-License-Identifier: BSD-3-Clause
"""The site of pages: its reference is whole, its pages show what is there, and its own check finds what is wrong."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
from ci import check_links
from ci.site import check_built, example, reference, stage

from cadge_analysis.tables import TABLES
from cadge_cli.cli import COMMANDS, GROUPS, cadge
from cadge_cli.commands.sweeps import TOPICS
from cadge_harness.errors import EXIT_CODES

ROOT = Path(__file__).resolve().parents[2]
INLINE = re.compile(r"`(cadge [a-z]+ [^`]*)`")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return reference.made(ROOT)


@pytest.fixture(scope="module")
def report() -> str:
    return example.report()


@pytest.mark.parametrize(
    ("page", "files"),
    [
        ("sweeps", "harness/sweeps/*.yml"),
        ("patterns", "harness/patterns/*/*.pattern.yml"),
        ("layers", "layers/*/*.layer.yml"),
    ],
)
def test_the_reference_has_every_file(made: dict[str, str], page: str, files: str) -> None:
    headings = check_links.read(made[f"reference/{page}.md"]).anchors
    for path in ROOT.glob(files):
        name = path.name.partition(".")[0]
        style = "shim" if path.parent.name == "shims" else path.parent.name
        assert (f"{style}-{name}" if page == "layers" else name) in headings


def test_sweeps_and_commands_are_grouped_as_the_terminal_groups_them(made: dict[str, str]) -> None:
    for page, heads in (("sweeps", TOPICS.values()), ("commands", GROUPS)):
        text = made[f"reference/{page}.md"]
        found = re.findall(r"^\*\*(.*)\*\*\n\n\| (?:sweep|command) ", text, re.MULTILINE)
        assert found == [head for head in heads if head in found], "each once, in this order"
        assert len(found) >= 4
    assert made["reference/sweeps.md"].count("](#") == len(list((ROOT / "harness/sweeps").glob("*.yml")))


def test_the_reference_has_every_command_and_option_and_exit_code(made: dict[str, str]) -> None:
    text = made["reference/commands.md"]
    for name in COMMANDS:
        assert f"\n## cadge {name}\n" in text
    assert "### cadge testbed up\n" in text
    assert "| `--budget TIME` |" in text
    assert "```text\nExamples:\n" in text
    for number, meaning in EXIT_CODES.items():
        assert f"| {number} | {reference.escaped(meaning)} |" in made["reference/exit-codes.md"]


def test_the_reference_has_every_table_and_column(made: dict[str, str]) -> None:
    text = made["reference/tables.md"]
    for name, one in TABLES.items():
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        found = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", section, re.MULTILINE)
        assert found == [(column.name, column.kind, reference.escaped(column.about)) for column in one.fixed]


def test_words_are_no_markup() -> None:
    assert reference.escaped("a_b *c* [d](e) <f> | $g\n h") == r"a\_b \*c\* \[d\](e) \<f\> \| \$g h"
    assert reference.escaped("see `cadge a_b`") == "see `cadge a_b`"


def test_links_within_made_pages_lead_somewhere(made: dict[str, str]) -> None:
    for name, text in made.items():
        page = check_links.read(text)
        for link in page.links:
            assert link.target.startswith("#"), (name, link)
            assert link.target[1:] in page.anchors, (name, link)


def test_every_page_has_a_place_in_the_contents(made: dict[str, str]) -> None:
    names = [*stage.pages(ROOT), *made]
    text = stage.contents([*names, "some/new/page.md"])
    for name in [*names, "some/new/page.md"]:
        place = re.escape(f"/{name.removesuffix('.md')}")
        assert len(re.findall(rf"^(?:{place}|.* <{place}>)$", text, re.MULTILINE)) == 1, name


def test_links_to_folders_lead_to_their_readme(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/c").mkdir()
    text = "[b](b) and [c](c/) and [d](d.md)"
    every = ["a/page.md", "a/b/README.md", "a/d.md"]
    assert stage.with_links("a/page.md", text, tmp_path, every, ()) == "[b](b/README.md) and c and [d](d.md)"


def test_html_that_pages_link_to_goes_as_it_lies_with_its_folder(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "made").mkdir()
    for name in ("page.html", "other.html", "data.csv.gz", "README.md"):
        (tmp_path / "made" / name).write_text("[page](page.html)")
    (tmp_path / "README.md").write_text("[the page](made/page.html)")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    lying = stage.whole(tmp_path)
    assert {name: sorted(files) for name, files in lying.items()} == {
        "made": ["made/data.csv.gz", "made/other.html", "made/page.html"]
    }
    text = '[the page](made/page.html) <a href="made/README.md#a"><img></a> [r](made/README.md)'
    found = stage.with_links("README.md", text, tmp_path, ["README.md", "made/README.md"], lying["made"])
    assert found == ('<a href="made/page.html">the page</a> <a href="made/README.html#a"><img></a> [r](made/README.md)')


def test_every_section_of_a_report_is_explained_by_the_page_on_reading(report: str) -> None:
    """Of sections that are there once for each pattern and place, one stands for all."""
    sections = example.sections(report)
    text = (ROOT / "analysis/READING.md").read_text(encoding="utf-8")
    shown = [match[1] for match in example.PLACE.finditer(text)]
    several = [name for name in sections if name.endswith(("-within", "-between", "-self"))]
    assert [name for name in sections if name not in several[1:]] == shown
    parts = re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", text, re.MULTILINE)
    explained = {match[1]: head for head, part in parts for match in example.PLACE.finditer(part)}
    own = {name: example.heading(piece) for name, piece in sections.items() if name not in several}
    assert {name: explained[name] for name in own} == own, "each under the section's own heading"
    filled = example.filled("analysis/READING.md", text, sections)
    assert filled.count("<iframe") == len(shown)


def test_a_piece_of_the_example_is_whole(report: str) -> None:
    pieces = example.sections(report)
    assert "leads" in pieces["answer"]
    assert re.search(r"\d to \d", pieces["answer"]), "an interval"
    assert "withheld" not in pieces["answer"]
    for name, text in pieces.items():
        anchors = set(re.findall(r'\bid="([^"]+)"', text))
        assert set(re.findall(r'href="#([^"]*)"', text)) <= anchors, name


def test_a_page_that_asks_for_a_piece_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"page\.md: the example's report has no section nowhere"):
        example.filled("page.md", "<!-- example: nowhere -->", {"answer": ""})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('<a href="b.html#here">', ""),
        ('<a href="https://example.org/">', ""),
        ('<link rel="canonical" href="https://example.org/">', ""),
        ('<img src="data:image/png;base64,AA==">', ""),
        ('<a href="c.html">', "there is no c.html"),
        ('<a href="b.html#there">', "b.html has no such anchor"),
        ('<a href="#there">', "a.html has no such anchor"),
        ('<img src="https://example.org/a.png">', "would be fetched"),
        ('<script src="//example.org/a.js"></script>', "would be fetched"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "would be fetched"),
        ('<iframe src="sub/d.html"></iframe>', "there is no sub/d.html"),
    ],
)
def test_what_is_wrong_in_a_built_site_is_found(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.html").write_text(text)
    (tmp_path / "b.html").write_text('<p id="here">')
    found = list(check_built.wrong(tmp_path))
    assert len(found) == bool(why)
    assert all(why in one for one in found)


def shown() -> list[tuple[str, str]]:
    """Return each command of ours that a page shows, with the page; the changelog's are of their day."""
    found = []
    for name, text in stage.pages(ROOT).items():
        if name == "CHANGELOG.md":
            continue
        for block in [*BLOCK.findall(text), *INLINE.findall(text)]:
            for line in block.splitlines():
                words = re.split(r"\s#|\s>|>\w|&&|\|", line)[0].strip().removeprefix(".venv/bin/")
                if words.startswith(("cadge ", "make ", "ci/")):
                    found.append((name, words))
    return found


def targets(page: str) -> set[str]:
    """Return the targets of the Makefile beside a page, or of the checkout's."""
    beside = ROOT / Path(page).parent / "Makefile"
    path = beside if beside.is_file() else ROOT / "Makefile"
    return set(re.findall(r"^([a-z-]+):", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_pages_show_commands() -> None:
    assert len([one for one in shown() if one[1].startswith("cadge")]) >= 20


@pytest.mark.parametrize(("page", "line"), shown())
def test_a_command_that_a_page_shows_is_one(page: str, line: str) -> None:
    """Options, subcommands and targets are those of today; what names a file or a campaign is not looked for."""
    program, *words = shlex.split(line)
    if program == "make":
        assert set(re.findall(r"^[a-z-]+$", "\n".join(words), re.MULTILINE)) <= targets(page), page
    elif program == "cadge":
        command: click.Command | None = cadge
        context = click.Context(cadge, info_name="cadge")
        while isinstance(command, click.Group):
            name, *words = words
            command = command.get_command(context, name)
        assert command is not None, page
        with contextlib.suppress(click.exceptions.Exit):  # --help
            command.make_context("cadge", words, parent=context)
    else:
        assert os.access(ROOT / program, os.X_OK), page


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_site_is_built(made: dict[str, str]) -> None:
    """Sphinx takes no warning, and every link within the site leads somewhere."""
    done = subprocess.run(["make", "-s", "site"], cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    html = ROOT / "build/site/html"
    for name in [*stage.pages(ROOT), *made]:
        assert (html / name).with_suffix(".html").is_file(), name
    assert (html / "example/report.html").stat().st_size > 50_000
    assert list(check_built.wrong(html)) == []
