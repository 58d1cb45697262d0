# SPDX-License-Identifier: BSD-3-Clause
"""What a call costs more than the bare message of the same bytes, over every layer without calls of its own.

Runs a campaign through the agents, like any sweep: rpc of n bytes beside pingpong of n + 16 bytes (an emulated call is
a message of 16 bytes more) and of n bytes, polling, all three in each launch. A launch gives one ratio of medians for
each size; printed are the median over launches and its 95 % interval. A cell passes where the upper end is at most
1.05.
Only attempts that are valid count.

    python harness/bench/calls.py --launches 15 --sizes 4096 65536 1048576
    python harness/bench/calls.py --touch write+read   data written before each message, and read after it
    python harness/bench/calls.py --campaign last      the figures of a campaign that is there
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from cadge_analysis.stats.intervals import Estimate, over_launches
from cadge_results import Campaign, Store
from cadge_results.formats.histogram import decode

ROOT = Path(__file__).resolve().parents[2]
TRAILER_BYTES = 16
UPPER_MAX = 1.05
SIZES = (4096, 16384, 65536, 262144, 1048576)
SWEEP = """\
schema: cadge.sweep/2
title: Calls over messages beside bare messages of the same bytes
layers: {layers}
places: [within, between]
waits: poll
vectors:
  calls: [{calls}]
  bares: [{bares}]
patterns:
  - {{pattern: rpc, request_bytes: calls, touch: {touch}}}
  - {{pattern: pingpong, bytes: bares, touch: {touch}}}
launches: {launches}
floors: false
duration: {{default: {duration_ms}ms}}
"""


def measure(testbed: str, layers: list[str], sizes: list[int], launches: int, duration_ms: int, touch: str) -> Campaign:
    """Run the campaign and return it."""
    bares = sorted({*sizes, *(size + TRAILER_BYTES for size in sizes)})
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as sweep:
        sweep.write(
            SWEEP.format(
                layers=f"[{', '.join(layers)}]" if layers else "all",
                calls=", ".join(f"{size}B" for size in sizes),
                bares=", ".join(f"{size}B" for size in bares),
                launches=launches,
                duration_ms=duration_ms,
                touch=touch,
            )
        )
        sweep.flush()
        done = subprocess.run(
            [sys.executable, "-m", "cadge_cli.cli", "run", "--sweep", sweep.name, "--testbed", testbed, "--no-report"],
            env={"CADGE_ROOT": str(ROOT), **os.environ},
            stdout=sys.stderr,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(f"calls.py: the campaign ended with {done.returncode}")
    return store().open("last")


def store() -> Store:
    """Return where campaigns lie."""
    return Store(Path(os.environ.get("CADGE_RESULTS") or ROOT / "results/campaigns"))


def medians(campaign: Campaign) -> dict[tuple[str, str], dict[str, dict[tuple[str, int], float]]]:
    """Return the median of every valid attempt in ns, by (layer, place), launch, (pattern, bytes)."""
    found: dict[tuple[str, str], dict[str, dict[tuple[str, int], float]]] = defaultdict(lambda: defaultdict(dict))
    emulated = {
        record.launch_id for record in campaign.launches() if record.result and record.result.adapter.rpc == "emulated"
    }
    for outcome in campaign.outcomes():
        if outcome.launch_id not in emulated or outcome.status != "valid" or outcome.attempt is None:
            continue
        workload, subject = outcome.point.workload, outcome.point.subject
        parameters = dict(workload.parameters)
        size = parameters["request_bytes" if workload.pattern == "rpc" else "bytes"]
        (samples,) = outcome.attempt.samples("latency")
        median_ns = float(decode(samples.histogram).percentile(50))
        found[subject.layer, subject.place][outcome.launch_id][workload.pattern, int(size)] = median_ns
    return found


def ratios(launches: dict[str, dict[tuple[str, int], float]], size: int, other: int) -> Estimate | None:
    """Return rpc of `size` over pingpong of `other` bytes, each launch's own."""
    pairs = [
        values["rpc", size] / values["pingpong", other]
        for values in launches.values()
        if ("rpc", size) in values and ("pingpong", other) in values
    ]
    return over_launches(pairs, paired=True) if pairs else None


def shown(estimate: Estimate | None) -> str:
    """Return a ratio as people write it."""
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def main() -> int:
    """Print one line a layer, place and size; exit 1 where one is beyond the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--layers", nargs="+", default=[])
    parser.add_argument("--testbed", default="emulated")
    parser.add_argument("--duration-ms", type=int, default=60)
    parser.add_argument("--touch", choices=("none", "write+read"), default="none", help="whether data are touched")
    parser.add_argument("--campaign", help="measure nothing: the figures of this one")
    given = parser.parse_args()
    if given.campaign:
        campaign = store().open(given.campaign)
    else:
        campaign = measure(given.testbed, given.layers, given.sizes, given.launches, given.duration_ms, given.touch)
    beyond = 0
    print(f"{'layer':14} {'place':8} {'n':>8} {'launches':>8}  {'rpc(n) / pingpong(n + 16)':27}  rpc(n) / pingpong(n)")
    for (layer, place), launches in sorted(medians(campaign).items()):
        for size in given.sizes:
            same, shorter = (ratios(launches, size, other) for other in (size + TRAILER_BYTES, size))
            if same is None:
                continue
            good = (same.high if same.high is not None else same.value) <= UPPER_MAX
            beyond += not good
            print(
                f"{layer:14} {place:8} {size:8} {same.launches:8}  {shown(same):27}  {shown(shorter):27}"
                f"{'' if good else '  BEYOND'}"
            )
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
