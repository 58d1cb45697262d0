# SPDX-License-Identifier: BSD-3-Clause
"""Whether two builds of the driver give the same results, in every field that is no time.

Both run the same launch files, with one seed, which end after a number of operations. Three runs of the old driver show
which fields are stable; a run of the new one has to agree in all of these. A field that differs is looked at again in
three more runs of the old driver: by chance it may have been the same three times.

    python harness/bench/same_results.py OLD NEW                      every pattern over null-self, in one process
    python harness/bench/same_results.py OLD NEW --layer sockets-unix --shim delay --set delay.delay_ns=20000
    python harness/bench/same_results.py OLD NEW --patterns rpc stream --varied

OLD and NEW are build folders; both drivers must know `operations`. Exit status: 0: same; 1: a field differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import alike_launches as alike

RUNS = 3
NO_RESULT = re.compile(
    r"(_ns2?|build_id|sha256|revision|version|pid|utc|histogram|\.ns|\.detail|_switches|_faults|\.steady|\.waits)$"
    r"|first_ns\.\d+$|resident_bytes|\.witness|\.clock|\.objects|control_bytes"
)
"""Fields that are times, or follow from them, or say which build this is: equal by chance alone."""


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every field of a document with its path; the length of each list as well."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{path}.{number}")
    else:
        yield path, value


def fields(build: Path, launch: alike.Json, modules: Path) -> dict[str, object]:
    """Return all fields of one run that are neither times nor names of a build."""
    try:
        result = alike.run(build, launch, modules)
    except alike.LaunchError as error:
        return {".reason": re.sub(r"\d+", "N", str(error))}
    return {path: value for path, value in leaves(result) if not NO_RESULT.search(path)}


def stable(runs: list[dict[str, object]]) -> dict[str, object]:
    """Return the fields that are the same in all runs."""
    first = runs[0]
    return {key: value for key, value in first.items() if all(one.get(key, runs) == value for one in runs[1:])}


def compare(old: Path, new: Path, launch: alike.Json, modules: Path) -> tuple[int, object, int, list[str]]:
    """Return how many fields are stable, why nothing or how much was measured, and a line for each that differs."""
    before = [fields(old, launch, modules) for _ in range(RUNS)]
    after = fields(new, launch, modules)
    same = stable(before)
    wrong = {key for key, value in same.items() if after.get(key, launch) != value} | (
        set(after) - set().union(*before)
    )
    if wrong:
        before += [fields(old, launch, modules) for _ in range(RUNS)]
        same = stable(before)
        wrong = {key for key in wrong if key in same or not any(key in one for one in before)}
    lines = [f"{key[1:]}: {same.get(key, 'not there')} before, {after.get(key, 'not there')} now" for key in wrong]
    done = sum(key.endswith(".status") and value == "done" for key, value in after.items()) - 1
    reason = after.get(".reason") or after.get(".attempts.0.reason")
    return len(same), reason, max(done, 0), sorted(lines)


def main() -> int:
    """Print a line for each launch, and each field that differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--varied", action="store_true", help="each parameter at other values in turn as well")
    alike.options(parser)
    given = parser.parse_args()
    differs = False
    for name, workloads in alike.chosen(given.patterns, given.workload, varied=given.varied).items():
        for launch in alike.launches(workloads, alike.setting_of(given, given.operations)):
            count, reason, done, lines = compare(given.old, given.new, launch, given.modules or given.new / "layers")
            points, ends = len(launch["points"]), len(launch["endpoints"])
            verdict = "DIFFERS" if lines else "same"
            print(
                f"{name:10} {ends} endpoints, {points:2} points ({done} done): {count:5} stable fields: {verdict}",
                flush=True,
            )
            if not done:
                print(f"    nothing was measured: {reason}")
            print(*(f"    {line}" for line in lines), sep="\n", end="\n" if lines else "", flush=True)
            differs |= bool(lines)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
