# SPDX-License-Identifier: BSD-3-Clause
"""Every sentence of every catalogue, as it is read: with 0, 1, 2 and many of what it counts.

`analysis/tests/messages/NAME.txt` keeps them, one page to proof-read; `examples.yml` beside them has the values, and a
field without one fails. After a change of words write the pages anew:

    .venv/bin/python analysis/tests/test_messages.py
"""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from cadge_analysis import messages
from cadge_results.plugins.catalogue import read_yaml

KEPT = Path(__file__).parent / "messages"
COUNTS = (0, 1, 2, 12345)
EXAMPLES = read_yaml((KEPT / "examples.yml").read_text(encoding="utf-8"))
ROOT = Path(__file__).parents[2]
CATALOGUES: dict[str, str | Path] = {path.stem: path.stem for path in sorted(messages.FOLDER.glob("*.yml"))} | {
    path.parent.name: path
    for path in (*sorted(ROOT.glob("analysis/studies/*/*/messages.yml")), ROOT / "harness/src/cadge_cli/messages.yml")
}


def _value(key: str, name: str, spec: str, count: int) -> object:
    """Return a value that fits a field of a sentence: a count where it is counted, or else its example."""
    own = EXAMPLES["sentences"].get(key, {})
    if name in own:
        return own[name]
    if "|" in spec or (not spec and name in EXAMPLES["counts"]):
        return count
    if spec in {",", ";", "and"}:
        return ["a", "b", "c"][: max(1, min(count, 3))]
    if spec.startswith("%"):
        return {0: 0.0, 1: 0.004, 2: 0.0625}.get(count, 1.0)
    if spec == "d":
        return count
    if spec in {"x", "3"} or spec.endswith(("f", "g")):
        return {0: 0.0, 1: 0.5, 2: 1.18}.get(count, 12345.0)
    return EXAMPLES["texts"][name]


def rendered(name: str) -> str:
    """Return all sentences of a catalogue with their keys; of one that counts, one for each count."""
    lines = []
    for key, text in messages.catalogue(CATALOGUES[name]).items():
        fields = [(field, spec) for _, field, spec, _ in string.Formatter().parse(text) if field]
        said: dict[str, None] = {}
        for count in COUNTS:
            values = {field: _value(f"{name}:{key}", field, str(spec), count) for field, spec in fields}
            said[messages.say(CATALOGUES[name], key, **values)] = None
        lines += [f"{key}:", *(f"    {sentence}" for sentence in said)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", CATALOGUES)
def test_sentences_are_those_that_are_kept(name: str) -> None:
    assert rendered(name).splitlines() == (KEPT / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def test_every_example_is_of_a_field() -> None:
    fields = {
        f"{name}:{key}": {field for _, field, _, _ in string.Formatter().parse(text) if field}
        for name, of in CATALOGUES.items()
        for key, text in messages.catalogue(of).items()
    }
    every = set().union(*fields.values())
    assert sorted({*EXAMPLES["counts"], *EXAMPLES["texts"]} - every) == []
    assert [key for key, own in EXAMPLES["sentences"].items() if not own.keys() <= fields.get(key, set())] == []


@pytest.mark.parametrize("name", CATALOGUES)
def test_sentences_are_written_as_they_are_printed(name: str) -> None:
    """No doubled space, none before a stop, and nothing that a reader would take for a hole."""
    for key, text in messages.catalogue(CATALOGUES[name]).items():
        prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
        assert "  " not in prose, key
        assert not re.search(r" [.,;:](\s|$)", prose), key
        assert text.strip(" ") == text or key.rpartition(".")[2] in {"where", "follows", "rest"}, key


def test_forms_of_values() -> None:
    write = messages._Sentence().format
    assert write("{n:launch|launches} {n:~is|are}", n=1) == "1 launch is"
    assert write("{n:launch|launches} {n:~is|are}", n=0) == "0 launches are"
    assert write("{n:launch|launches}", n=12345) == "12\u202f345 launches"
    assert write("{share:%} {share:%0} {ratio:x} {value:3}", share=0.0625, ratio=1.184, value=1.0) == (
        "6.2\u202f% 6\u202f% 1.18\u00d7 1.00"
    )
    assert write("{a:,}; {a:;}; {a:and}", a=["x", "y", "z"]) == "x, y, z; x; y; z; x, y and z"
    with pytest.raises(ValueError, match="a text has no form"):
        write("{n:%}", n="many")
    with pytest.raises(KeyError):
        messages.say("remarks", "uncommitted.text")
    with pytest.raises(KeyError):
        messages.say("remarks", "no.such.sentence")


if __name__ == "__main__":
    for catalogue in CATALOGUES:
        (KEPT / f"{catalogue}.txt").write_text(rendered(catalogue), encoding="utf-8")
