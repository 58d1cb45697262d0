# SPDX-License-Identifier: BSD-3-Clause
"""What the tree keeps of the outputs: a digest of each, and every sentence that a page shows, once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from golden.outputs import Outputs

SUMS = Path(__file__).parent / "sums.txt"
SENTENCES = Path(__file__).parent / "sentences.txt"
WORDS_MIN = 4
_WORD = re.compile(r"[A-Za-z]{2,}")
_END = re.compile(r"(?<=[.;:?!])\s+(?=[A-Z\u201c])")


def digest(text: str) -> str:
    """Return a digest of an output."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sums(outputs: Mapping[str, Outputs]) -> str:
    """Return the digests of all outputs, a line each."""
    lines = (f"{digest(text)} {name}/{part}\n" for name, parts in outputs.items() for part, text in parts.items())
    return "".join(sorted(lines, key=lambda line: line.split()[1]))


def differing(name: str, parts: Outputs) -> list[str]:
    """Return which outputs of a scene are other ones than those kept, or are on one side alone."""
    kept = dict(reversed(line.split()) for line in SUMS.read_text(encoding="utf-8").splitlines())
    found = {f"{name}/{part}": digest(text) for part, text in parts.items()}
    before = {key: value for key, value in kept.items() if key.startswith(f"{name}/")}
    return sorted(key for key in before.keys() | found.keys() if before.get(key) != found.get(key))


def sentences(outputs: Mapping[str, Outputs]) -> str:
    """Return every sentence of the pages once, numbers taken out, in the order of scenes."""
    found: dict[str, None] = {}
    for parts in outputs.values():
        editions = [part for part in parts if part.endswith("markdown")] or [
            part for part in parts if part.endswith(".words")
        ]
        for part in editions:
            found |= dict.fromkeys(_sentences(parts[part]))
    return "".join(f"{one}\n" for one in found)


def _sentences(text: str) -> list[str]:
    pieces = [piece for line in text.splitlines() for piece in _END.split(line)]
    plain = [re.sub(r"\d+(?:[.,:\u202f\u00a0]\d+)*", "0", one.strip(" -*|")) for one in pieces]
    return [one for one in plain if len(_WORD.findall(one)) >= WORDS_MIN]
