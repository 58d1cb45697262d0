# SPDX-License-Identifier: BSD-3-Clause
"""`cadge sweeps`: the list, one of them, and the example with a comment on every key, which cannot go stale."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_harness.plan.sweep import read_sweep
from cadge_results import SweepFile
from cadge_results.formats.complaint import SchemaParts, schema_parts

from .conftest import WORKLOADS, Answer, FakeRunner

Cadge = Callable[..., Answer]
ROOT = Path(__file__).parents[2]
COLUMNS = 80
INSTEAD = {"looks": "launches", "without": "layers"}
"""Keys that may be given in the place of others."""


def test_the_list_has_every_file_and_what_it_asks(cadge: Cadge) -> None:
    answer = cadge("sweeps", "--json")
    found = {one["name"]: one for one in json.loads(answer.out)["data"]["sweeps"]}
    files = {path.stem: path for path in (ROOT / "harness/sweeps").glob("*.yml")}
    assert (answer.code, found.keys()) == (0, files.keys())
    for name, path in files.items():
        sweep, _ = read_sweep(path, WORKLOADS)
        assert found[name]["title"] == sweep.title
        assert sweep.topic != "own", f"{name} has no topic"
    text = cadge("sweeps").out
    assert max(map(len, text.splitlines())) <= COLUMNS
    words = " ".join(text.split())
    assert all(f"{name} {one['title']}" in words for name, one in found.items())


def test_a_wrong_file_hides_no_other(checkout: Checkout, cadge: Cadge) -> None:
    (checkout.sweeps / "broken.yml").write_text("schema: cadge.sweep/2\ntitle: [\n")
    answer = cadge("sweeps")
    assert answer.code == 2
    assert "  tiny  tiny" in answer.out.splitlines()
    assert "broken.yml:3:1: malformed YAML" in answer.err


@pytest.mark.usefixtures("checkout")
def test_one_of_them_with_its_planned_time(cadge: Cadge, runner: FakeRunner) -> None:
    assert runner
    shown = json.loads(cadge("sweeps", "tiny", "--json").out)["data"]
    plan = json.loads(cadge("plan", "--sweep", "tiny", "--json").out)["data"]
    planned = shown["planned"]
    assert planned.pop("wall_s") > planned["measure_s"]  # how long launches take beside that the machine of now decides
    assert planned == {
        "measure_s": plan["measure_s"],
        "points": plan["points"]["planned"],
        "launches": plan["launches"],
    }
    said = dict(re.findall(r"^  (\S+(?: here)?) +(.*)$", cadge("sweeps", "tiny").out, re.MULTILINE))
    assert said["patterns"] == "rpc; request_bytes sizes"
    assert (said["sizes"], said["layers"], said["places"]) == ("8B, 4KiB", "all", "within, between")
    assert (said["launches"], said["budget"]) == ("3", "none")
    assert said["time here"].startswith("about ")


def test_what_cannot_be_planned_is_shown_all_the_same(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> None:
    assert runner
    path = checkout.sweeps / "tiny.yml"
    path.write_text(path.read_text() + "layers: c-three\n")
    answer = cadge("sweeps", "tiny", "--json")
    data = json.loads(answer.out)["data"]
    assert (answer.code, data["planned"]) == (0, None)
    assert "not built" in data["not_planned"]


def keys(parts: SchemaParts, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Yield every key of a format, at each of its places."""
    for branch in parts.branches(parts.at(path)):
        for key in branch.get("properties", ()):
            yield key
            yield from keys(parts, (*path, key))
        if branch.get("items"):
            yield from keys(parts, (*path, 0))


def test_the_example_has_every_key_and_can_be_measured(cadge: Cadge, tmp_path: Path) -> None:
    text = cadge("sweeps", "example").out
    path = tmp_path / "mine.yml"
    path.write_text(text)
    assert max(map(len, text.splitlines())) <= COLUMNS
    said = re.findall(r"^ *(?:- )?(?:# )?(\w+): ", re.sub(r"(\w:)$", r"\1 ", text, flags=re.MULTILINE), re.MULTILINE)
    every = set(keys(schema_parts(SweepFile)))
    assert every <= set(said)
    assert len(every) > 25
    for key in every:
        assert re.search(rf"^ *# .*\n *(- )?(# )?{key}:", text, re.MULTILINE), f"{key} has no comment"
    answer = cadge("plan", "--sweep", str(path), "--testbed", "local", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["data"]["points"]["planned"] > 0


def test_each_commented_key_of_the_example_can_be_given(cadge: Cadge, tmp_path: Path) -> None:
    text = cadge("sweeps", "example").out
    lines = text.splitlines()
    names = read_catalogue(Checkout(ROOT)).names()
    path = tmp_path / "mine.yml"
    tried = []
    for number, line in enumerate(lines):
        match = re.fullmatch(r"( *)# (\w+): (\S.*)", line)
        if match is None or match[2] not in set(keys(schema_parts(SweepFile))):
            continue
        key, left = match[2], list(lines)
        left[number] = f"{match[1]}{key}: {match[3]}"
        if key == "zip":
            left[number] = f"{match[1]}reply_bytes: sizes\n{left[number]}"
        if key in INSTEAD:
            begin = next(at for at, one in enumerate(left) if one.startswith(f"{INSTEAD[key]}:"))
            end = next(at for at in range(begin + 1, len(left)) if re.match(r"\S|$", left[at]))
            del left[begin:end]
        path.write_text("\n".join(left))
        read_sweep(path, WORKLOADS, names)
        tried.append(key)
    assert len(tried) > 12


def test_the_page_shows_what_is_so(cadge: Cadge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _, _ = (ROOT / "harness/SWEEPS.md").read_text().partition("\n## More keys")
    monkeypatch.chdir(tmp_path)
    path = Path("mine.yml")
    [whole] = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    path.write_text(whole)
    commands = [one.split() for one in re.findall(r"^cadge ([^#\n]*)", page, re.MULTILINE)]
    assert [words[0] for words in commands] == [
        "sweeps",
        "sweeps",
        "sweeps",
        "sweeps",
        "plan",
        "run",
        "report",
        "compare",
    ]
    for words in commands[3:5]:
        answer = cadge(*words)
        assert answer.code == 0, answer.err
    [said] = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = whole.splitlines()
    lines[4:4] = ["launches: nine"]
    path.write_text("\n".join(line for line in lines if line != "launches: 9"))
    assert cadge("plan", "--sweep", "mine.yml").err == f"cadge: {said}"
    needed = schema_parts(SweepFile).at(())["required"]
    assert {*needed, "launches"} == {"schema", "title", "patterns", "launches", "duration"}


@pytest.mark.parametrize(
    ("wrong", "offered"), [("exmaple", "example"), ("examples", "example"), ("defualt", "default")]
)
def test_a_misspelt_name_is_offered_the_example_too(cadge: Cadge, wrong: str, offered: str) -> None:
    answer = cadge("sweeps", wrong)
    assert answer.code == 2
    assert offered in answer.err.partition("did you mean")[2]
