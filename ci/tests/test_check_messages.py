# SPDX-License-Identifier: BSD-3-Clause
"""A sentence that nobody says, and a value that nobody gives, are found."""

from __future__ import annotations

import pytest
from ci import check_messages

CODE = """\
def say(key, /, **values):
    return messages.say("words", key, **values)

def remark(key, some=None, **values):  # says: title, text
    values = {"every": 1, **values}
    return say(f"{key}.title", **values), say(f"{key}.text", **values)

say("plain", name="x")
say(f"kinds.{kind}", n=1)
say("first" if one else "second")
remark("lost", n=2)
"""
SENTENCES = {
    "plain": "the {name}",
    "kinds.a": "{n:launch|launches}",
    "kinds.b": "none",
    "first": "1",
    "second": "2",
    "lost.title": "{n} of {every}",
    "lost.text": "lost",
}


def found(code: str, sentences: dict[str, str]) -> list[str]:
    return list(check_messages.problems("words.yml", "'words'", sentences, {"x.py": code}))


def test_all_is_well() -> None:
    assert found(CODE, SENTENCES) == []
    assert check_messages.check() == []


@pytest.mark.parametrize(
    ("code", "sentences", "said"),
    [
        (CODE.replace('"plain", name="x"', '"plain"'), {}, ["x.py:8: plain is not given name"]),
        (
            CODE.replace('say("plain"', 'say("plan"'),
            {},
            ["x.py:8: words.yml has no sentence 'plan'", "words.yml: nobody says plain"],
        ),
        (CODE, {"kinds.c": "{m}"}, ["x.py:9: kinds.c is not given m"]),
        (CODE, {"third": "3"}, ["words.yml: nobody says third"]),
        (CODE.replace("n=2", "m=2"), {}, ["x.py:11: lost.title is not given n"]),
        (CODE, {"lost.text": "{who} lost"}, ["x.py:11: lost.text is not given who"]),
    ],
)
def test_what_is_wrong_is_found(code: str, sentences: dict[str, str], said: list[str]) -> None:
    assert found(code, SENTENCES | sentences) == said


def test_the_code_of_a_study_imports_what_says_its_sentences() -> None:
    code = "from cadge_study_x.spec import say\nsay('plain')\n"
    found = check_messages.problems("x/messages.yml", "MESSAGES", {"plain": "the {name}", "other": "1"}, {"x.py": code})
    assert list(found) == ["x.py:2: plain is not given name", "x/messages.yml: nobody says other"]
