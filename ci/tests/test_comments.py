# SPDX-License-Identifier: BSD-3-Clause
"""A torn comment is found, and a whole one is not."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_comments", ROOT / "ci/check_comments.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


comments = load()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("/*\n * what follows\n *counts\n */\n", "a blank is missing"),
        ("\tint a; /* how many there\n\t\t* are */\n", "goes on below it"),
        ("/* As for the client.\n */\n", "stands alone"),
        ("#define A \\\n\t1\n", "wrapped before its value"),
    ],
)
def test_a_torn_comment_is_found(text: str, fault: str) -> None:
    assert fault in " ".join(message for _, message in comments.torn(text))


@pytest.mark.parametrize(
    "text",
    [
        "/*\n * what follows\n *\n *	a -> b\n */\n",
        "\tint a; /* how many */\n",
        '\tconst char *a = "/*";\n',
        "#define A \\\n\tdo { \\\n\t} while (0)\n",
    ],
)
def test_a_whole_comment_is_not(text: str) -> None:
    assert list(comments.torn(text)) == []
