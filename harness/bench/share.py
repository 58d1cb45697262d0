# SPDX-License-Identifier: BSD-3-Clause
"""How much of a second `make sweep` is measuring: (warm-up + loops + floors) / wall, testbed and report included.

Usage: share.py [--sweep NAME]   (runs `SETUP=no make sweep SWEEP=NAME`; default: default)
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAMPAIGNS = ROOT / "results/campaigns"
MEASURING = ("warmup", "measure")


def main() -> int:
    """Run one sweep and print the share; exit 1 where the sweep failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweep", default="default")
    sweep = parser.parse_args().sweep
    before = set(CAMPAIGNS.glob("*/campaign.json"))
    begin = time.monotonic()
    done = subprocess.run(
        ["make", "sweep", f"SWEEP={sweep}"], cwd=ROOT, env={**os.environ, "SETUP": "no"}, check=False, stdout=sys.stderr
    )
    wall_s = time.monotonic() - begin
    new = set(CAMPAIGNS.glob("*/campaign.json")) - before
    if done.returncode not in (0, 1) or len(new) != 1:
        print(f"share.py: make sweep ended with {done.returncode} and left {len(new)} new campaigns", file=sys.stderr)
        return 1
    campaign = new.pop()
    planned_s = json.loads(campaign.read_text(encoding="utf-8"))["planned"]["wall_s"]
    phases: dict[str, int] = {}
    launches = 0
    for path in (campaign.parent / "launches").glob("*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))["result"]
        launches += 1
        for phase, spent_ns in (result or {}).get("phases_ns", {}).items():
            phases[phase] = phases.get(phase, 0) + spent_ns
    measuring_s = sum(phases.get(phase, 0) for phase in MEASURING) / 1e9
    print(f"campaign {campaign.parent.name}: {launches} launches, wall {wall_s:.1f} s, planned {planned_s:.0f} s")
    print("  " + ", ".join(f"{phase} {spent_ns / 1e9:.1f} s" for phase, spent_ns in sorted(phases.items())))
    print(f"  warm-up + loops + floors {measuring_s:.1f} s = {measuring_s / wall_s:.0%} of the wall clock")
    return 0


if __name__ == "__main__":
    sys.exit(main())
