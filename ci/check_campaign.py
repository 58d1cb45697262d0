# SPDX-License-Identifier: BSD-3-Clause
"""Check the newest campaign as a user would judge it: finished, every attempt accounted for, a report there.

Usage: check_campaign.py [--since-ns T] [--first-launch-within-s S]

T is a CLOCK_REALTIME time in ns: the campaign must have been made after it, its first launch begun at most S seconds
after it.
Prints what it found; exit 1 with the reason where something does not hold.
"""

import argparse
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from cadge_results import Campaign, Store

ROOT = Path(__file__).resolve().parent.parent


def judge(campaign: Campaign, since_ns: int, first_launch_within_s: float) -> list[str]:
    """Return what is wrong with the campaign, one sentence each."""
    wrong = []
    if campaign.meta.status != "finished":
        wrong.append(f"its status is {campaign.meta.status}, not finished")
    outcomes = campaign.outcomes()
    states = Counter(outcome.status for outcome in outcomes)
    print(f"{campaign.campaign_id}: " + ", ".join(f"{count} {state}" for state, count in sorted(states.items())))
    if states["missing"]:
        wrong.append(f"{states['planned']} planned attempts were never made")
    if states["failed"]:
        reasons = Counter(outcome.reason for outcome in outcomes if outcome.status == "failed")
        wrong += [f"{count} attempts failed: {reason}" for reason, count in reasons.most_common(5)]
    if not states["valid"]:
        wrong.append("no attempt is valid")
    if not campaign.layout.report.is_file() or campaign.layout.report.stat().st_size < 10_000:
        wrong.append("it has no report")
    started = [datetime.fromisoformat(record.result.started_utc) for record in campaign.launches() if record.result]
    if since_ns and started:
        first_s = (min(started) - datetime.fromtimestamp(since_ns / 1e9, UTC)).total_seconds()
        print(f"first launch {first_s:.1f} s after the command")
        if first_s < 0:
            wrong.append("it is older than the command")
        elif first_launch_within_s and first_s > first_launch_within_s:
            wrong.append(f"its first launch began after {first_s:.1f} s, more than {first_launch_within_s:.0f} s")
    return wrong


def main() -> int:
    """Judge the newest campaign of this checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since-ns", type=int, default=0)
    parser.add_argument("--first-launch-within-s", type=float, default=0)
    options = parser.parse_args()
    campaign = Store(ROOT / "results/campaigns").open("last")
    wrong = judge(campaign, options.since_ns, options.first_launch_within_s)
    for sentence in wrong:
        print(f"check_campaign: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
