# SPDX-License-Identifier: BSD-3-Clause
"""Print the Debian packages that this machine lacks for the given purposes, one a line.

The names come from the files that know them: each layer's `*.layer.yml` for its library, and the defaults of the role
cadge_setup for everything else. There is no other list. Where one of several will do, `a | b` is printed. It runs
before anything is installed, so it reads the few lines of YAML itself.

Usage: packages.py sweep|test|bench ...
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ROOT / "playbooks/roles/cadge_setup/defaults/main.yml"


def section(text: str, key: str) -> str:
    """Return what stands below a key of a YAML document's first level, without comments; "" without the key."""
    bare = re.sub(r"(^|\s)#.*", "", f"{text}\n", flags=re.MULTILINE)
    found = re.search(rf"^{key}:(.*\n?(?:(?:[ -].*)?\n)*)", bare, flags=re.MULTILINE)
    return found[1] if found else ""


def groups_in(text: str) -> dict[str, set[str]]:
    """Return the names in each list of a section: `group: [a, b]`, or a line each."""
    parts = re.split(r"([a-z_]+):", text)[1:]
    return {
        group: {name for part in re.split(r"[\[\]{},\n]", listed) if (name := part.strip(" -'\""))}
        for group, listed in zip(parts[::2], parts[1::2], strict=True)
    }


def wanted(purposes: list[str]) -> set[str]:
    """Return the names of all packages that these purposes need."""
    groups = groups_in(section(GROUPS.read_text(encoding="utf-8"), "cadge_setup_groups"))
    unknown = [purpose for purpose in purposes if purpose not in groups]
    if unknown:
        raise SystemExit(f"packages.py: unknown purpose {unknown[0]!r}; there are: {', '.join(groups)}")
    names = {name for purpose in purposes for name in groups[purpose]}
    for path in sorted((ROOT / "layers").glob("*/*.layer.yml")):
        of_layer = groups_in(section(path.read_text(encoding="utf-8"), "packages"))
        names.update(of_layer.get("build", ()), of_layer.get("run", ()))
    return names


def installed(names: set[str]) -> set[str]:
    """Return those of `names` that dpkg has, counting a package that another one provides."""
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package} ${Provides}\n"]
    listing = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    have: set[str] = set()
    for line in listing.splitlines():
        status, _, rest = line.partition(" ")
        if status == "installed":
            package, _, provides = rest.partition(" ")
            have.add(package)
            have.update(item.split()[0] for item in provides.split(",") if item.strip())
    return names & have


def main() -> None:
    """Print what is missing; exit 0 whether or not anything is."""
    wishes = {wish: {name.strip() for name in wish.split("|")} for wish in wanted(sys.argv[1:])}
    have = installed(set().union(*wishes.values()))
    for wish in sorted(wish for wish, names in wishes.items() if not names & have):
        print(wish)


if __name__ == "__main__":
    main()
