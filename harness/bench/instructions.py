# SPDX-License-Identifier: BSD-3-Clause
"""Instructions an operation of the driver's patterns, by callgrind: of one build, or of two with their ratio.

Counted is what happens below the driver's function drv_measured: what each endpoint does in the measurement, acting or
serving. A launch runs with two numbers of operations, and the difference of the counts is divided by that of the
operations, so that what is done once cancels out. In one process, over null-self, counts repeat within 0.2 %. Where two
processes poll, the number of idle turns depends on the machine: beside all instructions stand those in the driver's own
code alone, and how often the layer was polled. With --wait block, counts repeat again.

    python harness/bench/instructions.py build
    python harness/bench/instructions.py OLD NEW --layer sockets-unix --wait block --patterns rpc load
    python harness/bench/instructions.py OLD NEW --whole    all threads and the warm-up as well: for worker threads

Exit status: 1 where a ratio is above --most. Needs valgrind. Times mean nothing under it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import alike_launches as alike

MARKER = "drv_measured*"
NAME = re.compile(r"^(c?)(ob|fn)=\((\d+)\)(?: (.*))?$")


@dataclass
class Count:
    """What callgrind counted in one process."""

    all: float = 0
    """Instructions."""
    driver: float = 0
    """Of these in the driver's own code, without layers and libraries."""
    polls: float = 0
    """Calls of a layer's poll."""


def read(path: Path) -> Count:
    """Read what callgrind wrote: self cost by object, and calls of a poll from the driver's code."""
    names: dict[tuple[str, str], str] = {}
    now = {"ob": "", "fn": "", "cob": "", "cfn": ""}
    count, inclusive = Count(), False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if named := NAME.match(line):
            called, kind, number, name = named.groups()
            if name is not None:
                names[kind, number] = name
            now[called + kind] = names[kind, number]
            if kind == "ob":
                now["cob"] = now["ob"] if not called else now["cob"]
        elif line.startswith("calls="):
            in_layer = now["ob"].endswith("cadge-driver") and now["cob"].endswith(".so")
            if in_layer and now["cfn"].partition("'")[0].endswith("_poll"):
                count.polls += int(line[6:].split()[0])
            inclusive = True
        elif line[:1] in "+-*0123456789" and line[:1]:
            cost = int(line.split()[1]) if not inclusive and len(line.split()) > 1 else 0
            count.all += cost
            count.driver += cost if now["ob"].endswith("cadge-driver") else 0
            if inclusive:
                now["cob"] = now["ob"]
            inclusive = False
    return count


def counts(build: Path, launch: alike.Json, modules: Path, *, whole: bool) -> tuple[dict[int, Count], int]:
    """Return the counts of one launch by endpoint, and its operations."""
    with tempfile.TemporaryDirectory() as folder:
        limits = [] if whole else ["--collect-atstart=no", f"--toggle-collect={MARKER}"]
        out = f"--callgrind-out-file={folder}/{{endpoint}}"
        result = alike.run(build, launch, modules, ("valgrind", "--quiet", "--tool=callgrind", out, *limits))
        attempts = [one for one in result["attempts"] if one["status"] in ("done", "unsound")]
        if not attempts:
            raise alike.LaunchError(result["reason"] or result["attempts"][0]["reason"])
        found = {number: read(Path(folder, str(number))) for number in range(len(launch["endpoints"]))}
        return found, sum(one["operations"] for one in attempts)


def each(build: Path, launch: alike.Json, modules: Path, operations: int, *, whole: bool) -> dict[int, Count]:
    """Return counts an operation, by endpoint."""
    few, fewer = counts(build, {**launch, "operations": operations // 4}, modules, whole=whole)
    many, more = counts(build, {**launch, "operations": operations}, modules, whole=whole)
    by = (more - fewer) * (2 if whole else 1)
    if by <= 0:
        raise alike.LaunchError("it ended after no more operations than were asked of it first")
    return {
        number: Count(
            (one.all - few[number].all) / by,
            (one.driver - few[number].driver) / by,
            (one.polls - few[number].polls) / by,
        )
        for number, one in many.items()
    }


def lines(launch: alike.Json, builds: list[dict[int, Count]]) -> Iterator[tuple[str, float]]:
    """Yield a line for each role, and the ratio of all its instructions."""
    seen = Counter(end["role"] for end in launch["endpoints"])
    done = set()
    for number, end in enumerate(launch["endpoints"]):
        if end["role"] in done:
            continue
        done.add(end["role"])
        text = f"{end['role']:10}" + (f" (1 of {seen[end['role']]})" if seen[end["role"]] > 1 else "")
        shown = [f"{one[number].all:10.1f} {one[number].driver:9.1f} {one[number].polls:7.2f}" for one in builds]
        ratio = builds[-1][number].all / builds[0][number].all if builds[0][number].all else 1.0
        yield f"{text:18} {'  '.join(shown)}" + (f"  {ratio:6.4f}" if len(builds) > 1 else ""), ratio


def main() -> int:
    """Print a line for each workload and role: all instructions, those in the driver, polls; new ÷ old."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", type=Path, help="build folders: one, or old and new")
    parser.add_argument("--operations", type=int, default=8000)
    parser.add_argument("--whole", action="store_true", help="all threads, from the process's start to its end")
    parser.add_argument("--most", type=float, default=1.01, help="the largest ratio that is fine (usual: 1.01)")
    alike.options(parser)
    given = parser.parse_args()
    modules = given.modules or given.builds[-1] / "layers"
    above = False
    print(f"{'':48} {'all':>10} {'driver':>9} {'polls':>7}  an operation, of each build; ratio of all")
    for name, workloads in alike.chosen(given.patterns, given.workload, varied=False).items():
        for workload in workloads:
            for launch in alike.launches([workload], alike.setting_of(given, given.operations)):
                try:
                    found = [
                        each(build, launch, modules, given.operations, whole=given.whole) for build in given.builds
                    ]
                except alike.LaunchError as error:
                    print(f"{name:28}  {error}", flush=True)
                    continue
                for line, ratio in lines(launch, found):
                    above |= ratio > given.most
                    print(f"{name:28}  {line}", flush=True)
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
