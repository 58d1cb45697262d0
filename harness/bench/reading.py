# SPDX-License-Identifier: BSD-3-Clause
"""How long reading and analysing a campaign takes, part by part: first without a cache (cold), then with it (warm).

A part's seconds are by the clock, and of processors: user and system, of this process and of the one that helps it. The
memory is the most that this process, and that one, ever had. Beside other work the clock says too much; processors'
seconds then do so by less. Cold is without Cadge's columns: the files themselves may lie in the kernel's page cache.

    python harness/bench/full_size.py FOLDER
    nice python harness/bench/reading.py FOLDER/CAMPAIGN [--page]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Part = tuple[str, float, float]


def cpu_s() -> float:
    """Return the processors' seconds of this process and of those that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def once(path: Path, *, page: bool) -> dict[str, object]:
    """Read and analyse a campaign, and return how long each part took."""
    parts: list[Part] = []

    @contextmanager
    def part(name: str) -> Iterator[None]:
        begun, before = time.perf_counter(), cpu_s()
        yield
        parts.append((name, time.perf_counter() - begun, cpu_s() - before))

    with part("imports"):
        from cadge_analysis import report
        from cadge_analysis.judged import judged
        from cadge_analysis.stats.compare import compare
        from cadge_analysis.stats.load import read
        from cadge_results import Campaign
        from cadge_results.uncollected import uncollected

    campaign = Campaign(path)
    with part("plan"):
        attempts = sum(len(launch.point_ids) for launch in campaign.plan.launches)
    with part("records"), uncollected():  # as the analysis does around all that it reads
        launches = sum(1 for _ in campaign.readings())
    with part("cells"):
        data = read(campaign)
    with part("numbers and ratios"):
        comparison = compare(data)
    with part("verdicts"):
        judged(comparison)
    if page:
        with part("page, verdicts again"):
            made = report.page_of(data)
        with part("HTML"):
            report.html(made)
    most_kib = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"parts": parts, "attempts": attempts, "launches": launches, "most_kib": most_kib}


def main() -> None:
    """Measure cold and warm, each in a process of its own, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", type=Path)
    parser.add_argument("--page", action="store_true", help="make the report as well")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(json.dumps(once(given.campaign, page=given.page)))
        return
    argv = [sys.executable, __file__, str(given.campaign), "--once", *["--page"] * given.page]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        cold, warm = (
            json.loads(subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True).stdout)
            for _ in range(2)
        )
        cache_bytes = sum(path.stat().st_size for path in Path(cache).rglob("*") if path.is_file())
    raw_bytes = sum(path.stat().st_size for path in (given.campaign / "launches").iterdir())
    print(f"{cold['attempts']} attempts in {cold['launches']} launches, {raw_bytes / 1e6:.0f} MB raw, ", end="")
    print(f"{cache_bytes / 1e6:.0f} MB of columns; load {os.getloadavg()[0]:.1f}\n")
    print(f"{'':22}{'cold s':>9}{'CPU s':>9}{'warm s':>9}{'CPU s':>9}")
    for one, other in zip(cold["parts"], warm["parts"], strict=True):
        print(f"{one[0]:22}{one[1]:9.2f}{one[2]:9.2f}{other[1]:9.2f}{other[2]:9.2f}")
    sums = [sum(part[place] for part in run["parts"]) for run in (cold, warm) for place in (1, 2)]
    print(f"{'together':22}" + "".join(f"{one:9.2f}" for one in sums))
    for name, run in (("cold", cold), ("warm", warm)):
        own, helper = (kib / 1024 for kib in run["most_kib"])
        print(f"most memory, {name}: {own:.0f} MiB, and {helper:.0f} MiB in the other process")


if __name__ == "__main__":
    main()
