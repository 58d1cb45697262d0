# SPDX-License-Identifier: BSD-3-Clause
"""`cadge compare` as users run it: what it prints, its exit codes, and what it says of wrong input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_cli.words import say
from cadge_harness.paths import Checkout
from cadge_results import Store

from .conftest import Answer, FakeRunner, without_checksums
from .test_learn import carry_out

Cadge = Callable[..., Answer]


@pytest.fixture
def campaigns(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> list[str]:
    """Two campaigns of the tiny sweep, of other seeds: with one seed both may be called the same within a second."""
    assert runner
    sweep = checkout.sweeps / "tiny.yml"
    for seed in ("seed: 7", "seed: 8"):
        sweep.write_text(sweep.read_text().replace("seed: 7", seed))
        carry_out(cadge, checkout)
    return [one.campaign_id for one in Store(checkout.campaigns).campaigns()]


def test_two_campaigns(campaigns: list[str], cadge: Cadge) -> None:
    answer = cadge("compare", campaigns[0], campaigns[1])
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[:2] == [f"- first: {campaigns[0]}", f"- second: {campaigns[1]}"]
    assert "not paired; the same is within 5 %" in answer.out
    assert "undecided (about 1 more launch)" in answer.out or "same" in answer.out
    markdown = cadge("compare", campaigns[0], campaigns[1], "--format", "markdown")
    assert "| point | verdict | change | second / first | first | second |" in markdown.out
    data = json.loads(cadge("compare", campaigns[0], campaigns[1], "--json").out)["data"]
    assert (data["first"], data["second"], data["paired"]) == (campaigns[0], campaigns[1], False)
    assert len(data["pairs"]) > 2
    assert {change["verdict"] for change in data["pairs"]} <= {"faster", "slower", "same", "cannot tell"}


def test_undecided_with_launches_enough_has_no_brackets(
    campaigns: list[str], cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert campaigns
    monkeypatch.setattr("cadge_analysis.versus.change_words.more", lambda _change: "")
    row = next(line for line in cadge("compare", "last:a-one", "last:b-two").out.splitlines() if "undecided" in line)
    assert "()" not in row


def test_as_one_page(campaigns: list[str], cadge: Cadge, tmp_path: Path) -> None:
    page = tmp_path / "beside.html"
    answer = cadge("compare", *campaigns, "--format", "html", "-o", str(page))
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[0].startswith(f"{page}  ")
    assert f"{campaigns[1]} against {campaigns[0]}" in page.read_text()
    printed = cadge("compare", *campaigns, "--format", "html")
    assert printed.out == page.read_text()
    data = json.loads(cadge("compare", *campaigns, "--format", "html", "-o", str(page), "--json").out)["data"]
    assert data["file"] == str(page)
    for arguments, said in (
        (("--format", "html", "--json"), "the page needs a file: add -o FILE"),
        (("--format", "html", "--all"), "--all is for text and Markdown"),
        (("--vary", "kernel"), "--vary is for --format html"),
        (("--format", "html", "-o", str(tmp_path / "no" / "where.html")), "does not exist"),
    ):
        wrong = cadge("compare", *campaigns, *arguments)
        assert (wrong.code, said in wrong.err) == (3 if "-o" in arguments else 2, True), wrong.err


@pytest.mark.long
def test_what_is_the_same_is_listed_only_when_asked_for(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    assert runner
    sweep = checkout.sweeps / "tiny.yml"
    sweep.write_text(sweep.read_text().replace("launches: 3", "launches: 14"))
    carry_out(cadge, checkout)
    cells = len(json.loads(cadge("compare", "last", "last", "--json").out)["data"]["pairs"])
    for kind, ratio in (("text", "1.000 [1.000, 1.000]"), ("markdown", "1.000 \\[1.000, 1.000\\]")):
        arguments = ("compare", "last", "last", "--format", kind)
        short, long = cadge(*arguments).out, cadge(*arguments, "--all").out
        assert long.count(ratio) == cells
        assert ratio not in short
        assert f"{cells} points the same, listed with --all" in short


@pytest.mark.long
def test_a_report_against_an_earlier_campaign(
    campaigns: list[str], cadge: Cadge, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("report") / "since.html"
    answer = cadge("report", campaigns[1], "--against", campaigns[0], "--margin", "20%", "-o", str(path))
    assert answer.code == 0, answer.err
    (said,) = (line for line in answer.out.splitlines() if line.startswith("found: Since campaign"))
    assert said.startswith(f"found: Since campaign {campaigns[0]} ")
    assert f"Since campaign {campaigns[0]}" in path.read_text()
    # of one campaign with itself nothing differs; what --against alone has a meaning for is refused without it
    data = json.loads(cadge("report", campaigns[0], "--against", campaigns[0], "-o", str(path), "--json").out)["data"]
    assert [one["kind"] for one in data["findings"]] == ["since"]
    assert "nothing can be decided" in data["findings"][0]["text"]
    refused = cadge("report", campaigns[0], "--margin", "20%", "-o", str(path))
    assert (refused.code, "--margin is for --against" in refused.err) == (2, True)


def test_a_campaign_beside_itself(campaigns: list[str], cadge: Cadge) -> None:
    answer = cadge("compare", campaigns[0], campaigns[0], "--json")
    assert answer.code == 0
    assert {change["measured_ratio"] for change in json.loads(answer.out)["data"]["pairs"]} == {1.0}


def test_two_layers_of_one(campaigns: list[str], cadge: Cadge) -> None:
    answer = cadge("compare", f"{campaigns[0]}:a-one", f"{campaigns[0]}:b-two")
    assert answer.code == 0, answer.err
    assert "paired by round" in answer.out
    assert "a-one \u2192 b-two" in answer.out


def test_exit_codes(campaigns: list[str], cadge: Cadge, checkout: Checkout) -> None:
    answer = cadge("run", "--sweep", "tiny", "--layers", "a-one", "--no-report")
    assert answer.code == 0, answer.err
    before = campaigns[0]
    [after] = [name for one in Store(checkout.campaigns).campaigns() if (name := one.campaign_id) not in campaigns]
    lacking = cadge("compare", before, after, "--fail-on", "missing")
    assert lacking.code == 8
    assert "points" in lacking.err
    assert cadge("compare", after, before, "--fail-on", "missing").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--margin", "5"), "a share is written like 5% or 2.5%"),
        (("--margin", "0%"), "above 0% and at most 100%"),
        (("--fail-on", "worse"), "it is slower, faster (also with a share"),
        (("--fail-on", "slower:much"), "a share is written like"),
        (("--fail-on", "missing:5%"), "or missing"),
    ],
)
@pytest.mark.first(2)
def test_wrong_options(campaigns: list[str], cadge: Cadge, arguments: tuple[str, ...], said: str) -> None:
    answer = cadge("compare", campaigns[0], campaigns[1], *arguments)
    assert answer.code == 2
    assert said in answer.err


def test_wrong_sides(campaigns: list[str], cadge: Cadge) -> None:
    assert "unknown layer 'a-onne'; did you mean a-one?" in cadge("compare", "last:a-onne", "last:b-two").err
    answer = cadge("compare", "last:a-one", campaigns[0])
    assert (answer.code, "one side is a layer" in answer.err) == (2, True)
    assert cadge("compare", "20200101T000000Z-00000000", "last").code == 5


def test_other_machines_are_refused_unless_they_are_meant(
    campaigns: list[str], cadge: Cadge, checkout: Checkout
) -> None:
    changed = Store(checkout.campaigns).open(campaigns[1])
    given = {"schema": "cadge.node/1", "cores": {"logical": 64}}
    for host in ("h1", "h2"):
        path = changed.layout.node(host)
        path.parent.mkdir(exist_ok=True)
        path.chmod(0o644) if path.exists() else None
        path.write_text(json.dumps(given | {"host": host}))
    without_checksums(changed)
    refused = cadge("compare", campaigns[0], campaigns[1])
    assert refused.code == 5, refused.err
    assert "nothing can be compared" in refused.err
    assert "refused: another machine" in refused.out
    answer = cadge("compare", campaigns[0], campaigns[1], "--json")
    assert answer.code == 5
    left = json.loads(answer.out)["data"]["left"]
    assert all(one["refused"] for one in left if not one["why"].startswith("refused in"))
    meant = cadge("compare", campaigns[0], campaigns[1], "--across-hosts")
    assert meant.code == 0, meant.err
    assert say("compare.machines") in meant.out


def test_a_gate_that_cannot_judge_has_no_answer(campaigns: list[str], cadge: Cadge) -> None:
    """Three launches of each find no difference, however large; with other sides too few series show the drift."""
    for sides in ((campaigns[0], campaigns[0]), campaigns, (f"{campaigns[0]}:a-one", f"{campaigns[0]}:b-two")):
        found = cadge("compare", *sides, "--fail-on", "slower", "--fail-on", "faster:5%", "--json")
        answer = json.loads(found.out)
        n = len(answer["data"]["pairs"])
        why = answer["data"]["withheld"] or say("compare.few_launches")
        assert found.code == answer["code"] == 5
        assert answer["problems"] == [
            say("compare.no_answer", kind=kind, left=n, n=n, why=why) for kind in ("slower", "faster")
        ]
    assert cadge("compare", *campaigns).code == 0


def test_what_decides_the_exit_code(campaigns: list[str], cadge: Cadge) -> None:
    """Three launches of each decide nothing."""
    undecided = cadge("compare", campaigns[0], campaigns[1], "--fail-on", "undecided")
    assert undecided.code == 8
    assert "--fail-on undecided" in undecided.err
    assert cadge("compare", campaigns[0], campaigns[1], "--fail-on", "refused").code == 0


CELL = "within, poll, rpc, 8 B, round trip"


@pytest.mark.long
def test_a_cell_takes_the_names_that_compare_prints(campaigns: list[str], cadge: Cadge) -> None:
    data = json.loads(cadge("compare", *campaigns, "--json").out)["data"]
    for name in (change["cell"] for change in data["pairs"]):
        answer = cadge("compare", *campaigns, "--point", name)
        assert answer.code == 0, answer.err
        assert answer.out.splitlines()[0] == f"- first: {campaigns[0]}: {name}"
    of_layers = json.loads(cadge("compare", "last:a-one", "last:b-two", "--json").out)["data"]
    answer = cadge("compare", "last", "last", "--point", of_layers["pairs"][0]["cell"])
    assert answer.code == 0, answer.err
    assert [line.split(": ")[2].split(",")[0] for line in answer.out.splitlines()[:2]] == ["a-one", "b-two"]


def test_a_cell_of_two_layers(campaigns: list[str], cadge: Cadge) -> None:
    assert campaigns
    answer = cadge("compare", "last:a-one", "last:b-two", "--point", "RPC,8b, poll,within")
    assert answer.code == 0, answer.err
    assert "what differs" in answer.out
    assert f"a-one, {CELL}" in answer.out
    differing, alike = answer.out.split("alike on both sides")
    assert "layer" in differing
    assert "wait mode" in alike
    markdown = cadge("compare", f"last:a-one, {CELL}", f"last:b-two, {CELL}", "--point", "", "--format", "markdown")
    assert "| what | layer | a-one | b-two |" in markdown.out
    data = json.loads(cadge("compare", "last:a-one", "last:b-two", "--point", CELL, "--json").out)["data"]
    assert data["paired"]
    assert {"group": "what", "what": "layer", "first": "a-one", "second": "b-two", "differs": True, "ratio": None} in (
        data["aspects"]
    )


def test_a_cell_that_is_not_there_shows_those_that_are(campaigns: list[str], cadge: Cadge) -> None:
    """Each of them can be named as it is printed, and a part of a layer's name will do."""
    answer = cadge("compare", "last:one", "last:b-two", "--point", "within, poll, rpc, 9 B")
    shown = [line.strip() for line in answer.err.splitlines()[1:]]
    assert answer.code == 5
    assert 0 < len(shown) <= 8
    assert shown[0].startswith("a-one, within, poll, rpc, ")
    for name in shown:
        assert cadge("compare", "last", "last", "--point", name).code == 0, name
    assert cadge("compare", "last:one", "last:two", "--point", CELL).code == 0
    assert campaigns


def test_wrong_cells(campaigns: list[str], cadge: Cadge) -> None:
    assert campaigns
    for arguments, code, said in (
        (("last", "last", "--point", "rpc, 8 B"), 2, "; name one"),
        (("last", "last", "--point", "a-one, within, poll, rpc, 9 B"), 5, "nothing there is called '9 B'"),
        (("last:a-one", "last:b-two", "--point", "b-two"), 5, "has no point 'a-one, b-two'"),
        (("last", "last", "--point", ""), 2, "points called 'nothing'"),
        (("last:a-one", "20200101T000000Z-00000000", "--point", CELL), 5, "20200101T000000Z-00000000"),
        (("last:a-one", "last:b-two", "--point", CELL, "--margin", "much"), 2, "a share is written like"),
    ):
        answer = cadge("compare", *arguments)
        assert answer.code == code, answer.err
        assert said in answer.err


LAYERS = """\
- first: C:a-one
- second: C:b-two

nothing differed in the conditions that are known

paired by round; the same is within 5 %

point                                                 verdict                               second / first  first    second
----------------------------------------------------  ------------------------------------  --------------  -------  -------
a-one > b-two, between, poll, rpc, 4 KiB, round trip  undecided (at least 5 more launches)  1.000           1.00 us  1.00 us
a-one > b-two, between, poll, rpc, 8 B, round trip    undecided (at least 5 more launches)  1.000           1.00 us  1.00 us
a-one > b-two, within, poll, rpc, 4 KiB, round trip   undecided (at least 5 more launches)  1.000           1.00 us  1.00 us
a-one > b-two, within, poll, rpc, 8 B, round trip     undecided (at least 5 more launches)  1.000           1.00 us  1.00 us

- 4 points: 4 undecided; on average at most 5 % of the findings are false (Benjamini and Hochberg,
  over all points)
- Verdicts hold for these launches of 1 boot.
- a-one > b-two, rpc, round trip (less is better): 1.000, geometric mean of 4 points, not judged
"""  # noqa: E501

CELLS = """\
- first: C: a-one, within, poll, rpc, 8 B, round trip
- second: C: b-two, within, poll, rpc, 8 B, round trip

second / first: 1.000 [1.000, 1.000], which covers 75 %; paired by round, 3 rounds

this is one point alone; cadge compare judges it among all

[what differs]
of    what   first  second
----  -----  -----  ------
what  layer  a-one  b-two

[alike on both sides]
"""


def test_golden(campaigns: list[str], cadge: Cadge) -> None:
    """Word for word, but for characters beyond ASCII."""

    def said(*arguments: str) -> str:
        text = cadge(*arguments).out.replace(campaigns[0], "C")
        return text.translate({0xB5: "u", 0x2192: ">", 0x202F: " "})

    assert said("compare", f"{campaigns[0]}:a-one", f"{campaigns[0]}:b-two") == LAYERS
    assert said("compare", f"{campaigns[0]}:a-one", f"{campaigns[0]}:b-two", "--point", CELL).startswith(CELLS)
