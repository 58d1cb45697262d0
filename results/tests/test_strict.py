# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that no document may hold, at and beside each limit; and that a search for them never misses one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cadge_results import FormatError, NodeFacts
from cadge_results.formats import strict
from cadge_results.formats.strict import LARGEST, refusal
from cadge_results.plugins.catalogue import load_yaml, read_yaml


def node(value: str) -> bytes:
    return b'{"schema": "cadge.node/1", "host": "h", "kernel": %s}' % value.encode()


REFUSED = (
    str(2**63), str(-(2**63) - 1), "1" + "0" * 4999, "-" + "9" * 5000, "1e309", "-1E+400", "NaN", "-Infinity",
    "[[1e999]]", '{"a": 9223372036854775808}', "[" * 100_000 + "]" * 100_000, '{"a":' * 600 + "1" + "}" * 600,
    r'"\ud800"', r'"\udc00\ud800"', '{"a": 1, "a": 1}', '{"a": 1, "b": [], "a": 2}', '[{"b": {"a": {}, "a": 1}}]',
    r'{"a": 1, "\u0061": 2}', '{"a" : 1,\n"a"\t:2}', '{"": 1, "": 2}',
)  # fmt: skip
TAKEN = (
    str(LARGEST), str(-(2**63)), "1e308", "0.1234567890123456789012345", "[" * 100 + "]" * 100, '"NaN"',
    '"at 99999999999999999999999"', '"x,9e999"', '"9223372036854775808"', r'"\ud83d\ude00"',
    '{"a": {"a": 1}, "A": {"a": 2}}', '[{"a": 1}, {"a": 2}]', r'{"a": "\"a\": 1, \"a\": 2"}',
)  # fmt: skip


@pytest.mark.parametrize("value", REFUSED)
def test_what_is_refused(value: str) -> None:
    with pytest.raises(FormatError):
        NodeFacts.parse(node(value), source="t")


@pytest.mark.parametrize("value", TAKEN)
def test_what_is_taken(value: str) -> None:
    assert NodeFacts.parse(node(value), source="t").kernel == json.loads(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5452017587594899081", False),  # a seed has 19 digits, and fits
        (str(LARGEST), False), (str(-(2**63)), False), (str(2**63), True), ("[1," + "9" * 19 + "]", True),
        ("0.1234567890123456789", True), ('"NaN+InfinityAA=="', False), ("NaN", True), ("[1,-Infinity]", True),
    ],
)  # fmt: skip
def test_numbers_are_looked_at_one_by_one_only_where_one_may_not_fit(value: str, *, expected: bool) -> None:
    """Each record has a seed, and most have a histogram whose base64 holds `NaN`: both took four times as long."""
    assert strict._is_suspicious(node(value)) is expected


@pytest.mark.parametrize(
    "text", ['{"[1]": 1, "[2]": 2}', '{"a[1,2]": 1, "a": {"a[]": 1}, "a[3]": [1,2]}', "[[1,2],[3]]"]
)
def test_keys_that_look_like_lists_are_keys(text: str) -> None:
    assert refusal(node(text)) is None
    assert refusal(node(f'{{"x": {text}, "[1]": 1, "[1]": 2}}')) is not None


def test_a_key_of_the_document_itself_stands_once() -> None:
    for twice in (b'"host": "h2"', b'"schema": "cadge.node/1"', b'"kernel": 1'):
        with pytest.raises(FormatError, match="twice"):
            NodeFacts.parse(node("{}")[:-1] + b", " + twice + b"}", source="t")


@pytest.mark.parametrize("text", ["a: 1\na: 2\n", "a: {b: 1, b: 1}\n", "- {a: 1, c: 2, 'a': 2}\n", "<<: {}\n<<: {}\n"])
def test_a_key_of_yaml_stands_once(text: str, tmp_path: Path) -> None:
    with pytest.raises(yaml.YAMLError, match="is given twice"):
        read_yaml(text)
    (tmp_path / "x.yml").write_text(text)
    with pytest.raises(FormatError, match="is given twice"):
        load_yaml(tmp_path / "x.yml", NodeFacts)
    assert read_yaml("a: {a: 1}\nb: &b {a: 2}\nc: {<<: *b, a: 3}\n") == {"a": {"a": 1}, "b": {"a": 2}, "c": {"a": 3}}


def test_python_objects_are_held_to_the_same() -> None:
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    for value in (10**4999, 2**63, math.inf, math.nan, "\ud800", deep):
        with pytest.raises(FormatError):
            NodeFacts.from_object({"schema": "cadge.node/1", "host": "h", "kernel": value}, source="t")


JSON = st.recursive(
    st.none() | st.integers(-(2**70), 2**70) | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a,:[ 9e-", max_size=9), inner, max_size=3),
    max_leaves=8,
)


def fits(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(fits, value.values()))
    if isinstance(value, list):
        return all(map(fits, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -(2**63) <= value <= LARGEST


@given(JSON, st.sampled_from([None, 1]))
def test_the_search_agrees_with_a_walk(value: object, indent: int | None) -> None:
    assert (refusal(json.dumps(value, indent=indent).encode()) is None) == fits(value)
