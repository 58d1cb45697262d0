# SPDX-License-Identifier: BSD-3-Clause
"""Changes one thing in a stored document, as a stranger or a fault would, and seals it again where it was sealed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadge_results import Campaign
from cadge_results.formats.base import digest_without
from cadge_results.store.checksum import Checksum, beside

Steps = tuple[str | int, ...]
RAW = {
    "5,000 digits": "1" + "0" * 4999,
    "2^63": str(2**63),
    "2^64": str(2**64),
    "infinite": "1e999",
    "not a number": "NaN",
    "a lone surrogate": r'"\ud800"',
    "a zero byte": r'"\u0000"',
    "100,000 brackets": "[" * 100_000 + "]" * 100_000,
    "150 brackets": "[" * 150 + "]" * 150,
    "nested objects": '{"a":' * 600 + "1" + "}" * 600,
}
"""Values as JSON writes them, which Python's writer refuses."""
PLAIN: dict[str, Any] = {
    "nothing": None,
    "true": True,
    "-1": -1,
    "0": 0,
    "2^53 + 1": 2**53 + 1,
    "2^63 - 1": 2**63 - 1,
    "a half": 0.5,
    "tiny": 5e-324,
    "an empty string": "",
    "a path": "../../x",
    "control characters": "\x1b[31m\r\n",
    "an empty list": [],
    "an empty object": {},
    "a list of objects": [{}],
}
OPERATIONS = ("replace", "remove", "double", "rename", "swap", "copy", "bytes", "twice")
TWICE = "@twice@"
"""What stands before the name of a key that its object has already."""


@dataclass(frozen=True)
class Mutant:
    """What was changed, for whoever reads a failed test."""

    file: Path
    said: str
    sealed: bool


def _places(value: object, at: Steps = ()) -> list[Steps]:
    """Return the way to everything below a value."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value[:8]))  # of many alike, the first few
    return [place for step, one in inner for place in ((*at, step), *_places(one, (*at, step)))]


def _at(document: Any, steps: Steps) -> Any:  # noqa: ANN401 - any JSON
    for step in steps:
        document = document[step]
    return document


def _replaced(document: Any, steps: Steps, dice: random.Random) -> str:  # noqa: ANN401
    name = dice.choice([*PLAIN, *RAW])
    _at(document, steps[:-1])[steps[-1]] = f"@{name}@" if name in RAW else PLAIN[name]
    return name


def _changed(document: Any, dice: random.Random) -> str:  # noqa: ANN401
    """Change one thing, and say which."""
    places = _places(document)
    steps = dice.choice(places)
    held, last = _at(document, steps[:-1]), steps[-1]
    what = dice.choice(OPERATIONS)
    where = ".".join(map(str, steps))
    if what == "remove":
        del held[last]
    elif what == "double" and isinstance(held, list):
        held.insert(last, held[last])
    elif what == "rename" and isinstance(held, dict):
        held[f"{last}x"] = held.pop(last)
    elif what == "twice" and isinstance(held, dict):
        held[f"{TWICE}{last}"] = dice.choice([held[last], *PLAIN.values()])
    elif what in ("swap", "copy"):
        alike = [one for one in places if type(_at(document, one)) is type(held[last]) and one[-1] == last]
        other = dice.choice(alike)
        value = _at(document, other)
        if not isinstance(value, dict | list):
            held[last] = value
        where += f" by {'.'.join(map(str, other))}"
    else:
        what = _replaced(document, steps, dice)
    return f"{where}: {what}"


def _text(document: object, dice: random.Random) -> tuple[bytes, str]:
    said = _changed(document, dice)
    return written(document), said


def written(document: object) -> bytes:
    """Return a document as JSON, with the raw values that stand in it by their names."""
    text = json.dumps(document).replace(f'"{TWICE}', '"')
    for name, raw in RAW.items():
        text = text.replace(f'"@{name}@"', raw)
    return text.encode()


def _spoilt(content: bytes, dice: random.Random) -> tuple[bytes, str]:
    at = dice.randrange(len(content))
    how: dict[str, Callable[[], bytes]] = {
        "a byte that is no UTF-8": lambda: content[:at] + b"\xff" + content[at:],
        "cut": lambda: content[:at],
        "a digit": lambda: content[:at] + b"9" + content[at:],
        "a key twice": lambda: content.replace(b"{", b'{"schema": "x", ', 1),
    }
    name = dice.choice(list(how))
    return how[name](), f"{name} at byte {at}"


def mutate(campaign: Path, dice: random.Random) -> Mutant:
    """Change one document of a campaign; mostly its checksums are made to fit, as a stranger would make them."""
    files = sorted(path for path in campaign.rglob("*.json"))
    kind = dice.choice(sorted({(path.parent.name, path.name[:4]) if path.parent == campaign else path.parent.name
                               for path in files}, key=str))  # fmt: skip
    chosen = [path for path in files if kind in (path.parent.name, (path.parent.name, path.name[:4]))]
    path = dice.choice(chosen)
    return change(campaign, path, path.read_bytes(), dice)


def change(campaign: Path, path: Path, content: bytes, dice: random.Random) -> Mutant:
    """Change one document, which held `content`."""
    new, said = _spoilt(content, dice) if dice.random() < 0.1 else _text(json.loads(content), dice)
    sealed = dice.random() < 0.85
    _store(campaign, path, new, sealed=sealed)
    return Mutant(path, said, sealed)


def replace(campaign: Path, path: Path, steps: Steps, value: object) -> None:
    """Put a value into a document of a campaign, and seal it."""
    document = json.loads(path.read_bytes())
    _at(document, steps[:-1])[steps[-1]] = value
    _store(campaign, path, written(document), sealed=True)


def _store(campaign: Path, path: Path, content: bytes, *, sealed: bool) -> None:
    path.chmod(0o644)
    path.write_bytes(seal(campaign, path, content) if sealed else content)
    if sealed and beside(path).exists():
        _write_checksum(path)


def seal(campaign: Path, path: Path, content: bytes) -> bytes:
    """Return a document with the hashes over itself that it has to hold, as far as it is any."""
    layout = Campaign(campaign).layout
    try:
        if path == layout.plan:
            found = json.loads(content) | {"plan_hash": digest_without("plan_hash", content)}
            content = json.dumps(found).encode()
            _adopt(campaign, found["plan_hash"])
        elif path == layout.meta:
            found = json.loads(content)
            content = json.dumps(found | {"checksum": digest_without("checksum", content)}).encode()
    except (ValueError, RecursionError, TypeError):
        pass
    return content


def _adopt(campaign: Path, plan_hash: str) -> None:
    """Let everything that names the plan name the changed one."""
    layout = Campaign(campaign).layout
    for path in (layout.meta, *layout.decisions.glob("*.json"), *layout.later.glob("*.json")):
        found = json.loads(path.read_bytes()) | {"plan_hash": plan_hash}
        path.chmod(0o644)
        path.write_bytes(seal(campaign, path, json.dumps(found).encode()))
        if beside(path).exists():
            _write_checksum(path)


def _write_checksum(path: Path) -> None:
    line = beside(path)
    line.chmod(0o644)
    line.write_text(Checksum.of(path.read_bytes(), path.name).line())
