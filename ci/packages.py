# SPDX-License-Identifier: BSD-3-Clause
"""Print the Debian packages that this machine lacks for the given purposes, one a line.

The names come from the files that know them: each layer's `*.layer.yml` for its library, and the defaults of the role
cadge_setup for everything else. There is no other list. Where one of several will do, `a | b` is printed.

Usage: packages.py sweep|test|bench ...
"""

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ROOT / "playbooks/roles/cadge_setup/defaults/main.yml"


def wanted(purposes: list[str]) -> set[str]:
    """Return the names of all packages that these purposes need."""
    groups = yaml.safe_load(GROUPS.read_text(encoding="utf-8"))["cadge_setup_groups"]
    unknown = [purpose for purpose in purposes if purpose not in groups]
    if unknown:
        raise SystemExit(f"packages.py: unknown purpose {unknown[0]!r}; there are: {', '.join(groups)}")
    names = {name for purpose in purposes for name in groups[purpose]}
    for path in sorted((ROOT / "layers").glob("*/*.layer.yml")):
        packages = yaml.safe_load(path.read_text(encoding="utf-8")).get("packages") or {}
        names.update(packages.get("build") or [], packages.get("run") or [])
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
