# SPDX-License-Identifier: BSD-3-Clause
"""Check that no comment of the C code is torn: the formatter leaves them alone, people now and then do not.

Found are: a continued line without a blank after its star; a comment behind a member that goes on below it; an opening
that shares its line with text while the end stands alone; a definition wrapped before a value that fits beside it.
Exit 0 when nothing is torn, 1 with one line for each place.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WIDTH = 110
_WRAPPED = re.compile(r"^#\s*define\s+\w+\s*\\$")


def torn(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and fault of each torn comment in a C file."""
    lines = text.splitlines()
    inside = False
    opened_with_text = False
    for number, line in enumerate(lines, 1):
        if inside:
            if re.match(r"^\s*\*[^\s*/]", line):
                yield number, "a blank is missing after the star"
            if "*/" in line:
                inside = False
                if opened_with_text and line.strip() == "*/":
                    yield number, "the end of the comment stands alone"
            continue
        code, opening, rest = line.partition("/*")
        if opening and '"' not in code and "*/" not in rest:
            inside = True
            opened_with_text = bool(rest.strip()) and not code.strip()
            if code.strip():
                yield number, "a comment behind code goes on below it; put it above"
        if _WRAPPED.match(line) and number < len(lines):
            name, value = line.rstrip("\\").strip(), lines[number].strip()
            if not value.endswith("\\") and len(f"{name} {value}".expandtabs(8)) <= WIDTH:
                yield number, "a definition is wrapped before its value"


def main() -> int:
    """Print what is torn; return the exit status."""
    root = Path(__file__).resolve().parent.parent
    listing = subprocess.run(
        ["git", "ls-files", "-z", "*.c", "*.h", "*.cc"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    found = 0
    for name in filter(None, listing.split("\0")):
        path = root / name
        if not path.exists():
            continue
        for number, fault in torn(path.read_text(encoding="utf-8")):
            print(f"{name}:{number}: {fault}", file=sys.stderr)
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
