# SPDX-License-Identifier: BSD-3-Clause
"""Check that the layer contract still holds what was frozen: ci/abi-1 against layers/include/cadge/layer.h.

The text of each declaration is compared without its comments, so that types and arguments count as well as places.
What stands must stand where it stood: slots, fields and values as the first of their list, definitions as they were.
What was declared without room to grow must be equal. Exit 0 when it holds, 1 with one line for each difference.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FROZEN = ROOT / "ci/abi-1/include/cadge/layer.h"
TODAY = ROOT / "layers/include/cadge/layer.h"
GROWS = {"CADGE_CAPS_KNOWN", "CADGE_MAY_ALL"}
"""Definitions that become larger with what is appended."""
_GROUP = re.compile(r"\b(enum|struct)\s+(\w+)\s*\{(.*?)\}\s*;", re.DOTALL)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+(?:\([^)]*\))?)[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Group:
    """An enumeration or a struct: its members in order, each as its words."""

    kind: str
    members: tuple[str, ...]

    @property
    def grows(self) -> bool:
        """Whether members may be appended."""
        return self.kind == "enum" or "uint32_t bytes" in self.members[:2]


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+|[^\w\s]", text))


def _bare(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).replace("\\\n", " ")


def _numbered(members: list[str]) -> tuple[str, ...]:
    """Write out the value of each enumerator that has none of its own, so that one before it cannot move it."""
    numbered, following, base = [], 0, ""
    for member in members:
        name, _, value = (part.strip() for part in member.partition("="))
        if value:
            base, following = value, 0
        numbered.append(f"{name} = {value}" if value else f"{name} = {base} + {following}")
        following += 1
    return tuple(numbered)


def groups(text: str) -> dict[str, Group]:
    """Return the enumerations and structs of a header by name."""
    found = {}
    for kind, name, body in _GROUP.findall(_bare(text)):
        parts = [_words(part) for part in body.split("," if kind == "enum" else ";") if part.strip()]
        found[f"{kind} {name}"] = Group(kind, _numbered(parts) if kind == "enum" else tuple(parts))
    return found


def definitions(text: str) -> dict[str, str]:
    """Return the definitions of a header by name."""
    return {name: _words(value) for name, value in _DEFINITION.findall(_bare(text))}


def prototypes(text: str) -> set[str]:
    """Return what is declared outside of enumerations and structs."""
    rest = _GROUP.sub(";", re.sub(r"^[ \t]*#.*$", "", _bare(text), flags=re.MULTILINE))
    return {_words(part) for part in rest.split(";")} - {""}


def differences(frozen: str, today: str) -> Iterator[str]:
    """Yield what of a frozen header does not stand in today's as it did."""
    now = groups(today)
    for name, group in groups(frozen).items():
        new = now.get(name)
        if new is None:
            yield f"{name} is gone"
            continue
        wide = tuple(member for member in group.members if "_WIDE" in member)
        stood = [member for member in group.members if member not in wide]
        yield from (f"{name}: {member} is gone" for member in wide if member not in new.members)
        for place, member in enumerate(stood):
            if place >= len(new.members) or new.members[place] != member:
                instead = new.members[place] if place < len(new.members) else "nothing"
                yield f"{name}: where `{member}` stood there is `{instead}`"
                break
        if not group.grows and len(new.members) > len(group.members):
            yield f"{name} cannot grow, and has grown"
    values = definitions(today)
    for name, value in definitions(frozen).items():
        if name not in values:
            yield f"{name} is gone"
        elif name not in GROWS and values[name] != value:
            yield f"{name} was `{value}` and is `{values[name]}`"
    yield from (f"`{one}` is gone" for one in sorted(prototypes(frozen) - prototypes(today)))


def main() -> int:
    """Print what differs; return the exit status."""
    found = list(differences(FROZEN.read_text(encoding="utf-8"), TODAY.read_text(encoding="utf-8")))
    for line in found:
        print(f"{TODAY.relative_to(ROOT)}: ABI 1 is frozen: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
