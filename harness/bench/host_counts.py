# SPDX-License-Identifier: BSD-3-Clause
"""What more hosts cost the harness: `cadge doctor`, and a sweep in which each host measures with its next one.

The hosts are emulated, so what each of them does itself takes this machine's processors; hosts of a cluster do that at
the same time. A line for each number of hosts: seconds, what the sweep took beside its launches by host, and the
largest process of both. Needs root.

    python harness/bench/host_counts.py [--hosts 2,4,8,16] [--layer sockets-tcp]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.emulated import exec_prefix
from cadge_harness.testbed.host_files import DATA_PREFIX
from cadge_results import Store

SWEEP = """\
schema: cadge.sweep/2
title: Neighbours
topic: own
layers: [{layer}]
places: between
waits: poll
patterns: [{{pattern: rpc, request_bytes: 8B, depth: 1}}]
hosts: {hosts}
pairs: neighbours
launches: 1
seed: 1
duration: 20ms
floors: false
twin: none
"""


def inventory(folder: Path, made: dict[str, Any]) -> Path:
    """Write the inventory of a cluster whose hosts are the emulated ones; returns its path."""
    of_host = {
        name: {"cadge_device": "data0", "cadge_address": f"{DATA_PREFIX}.{11 + number}"}
        for number, name in enumerate(made["hosts"])
    }
    variables = {"ansible_ssh_common_args": f"-F {made['folder']}/ssh_config", "ansible_user": "root"}
    path = folder / "hosts.yml"
    path.write_text(json.dumps({"cadge": {"hosts": of_host, "vars": variables}}), encoding="utf-8")
    return path


def timed(*words: str, inside: int | None = None) -> tuple[float, float]:
    """Run cadge, in the network of a supervisor if one is given; returns seconds, and MiB of the largest process."""
    begun = time.monotonic()
    prefix = [] if inside is None else exec_prefix(inside)
    with tempfile.TemporaryFile() as said:
        argv = [*prefix, sys.executable, "-m", "cadge_cli.cli", *words, "--json"]
        child = subprocess.Popen(argv, stdout=said, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            problems = json.load(said)["problems"]
            raise SystemExit(f"cadge {' '.join(words)} ended with {child.returncode}: {problems}")
    return time.monotonic() - begun, usage.ru_maxrss / 1024


def main() -> None:
    """Print a line for each number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="2,4,8,16")
    parser.add_argument("--layer", default="sockets-tcp")
    given = parser.parse_args()
    print(f"{'hosts':>5} {'doctor':>8} {'sweep':>8} {'launches':>8} {'beside, by host':>15} {'memory':>8}")
    for hosts in map(int, given.hosts.split(",")):
        now = testbeds.up(hosts)
        if not now["made"]:
            raise SystemExit("emulated hosts are up already: cadge testbed down")
        try:
            with tempfile.TemporaryDirectory() as folder:
                sweep = Path(folder, "neighbours.yml")
                sweep.write_text(SWEEP.format(layer=given.layer, hosts=hosts), encoding="utf-8")
                listed = inventory(Path(folder), now)
                doctor_s, one_mib = timed("doctor", "--inventory", str(listed), inside=now["pid"])
                results = Path(folder, "results")
                words = ["--sweep", str(sweep), "--results", str(results), "--no-report"]
                sweep_s, other_mib = timed("run", "--testbed", "emulated", *words)
                launches = [record for record in Store(results).open("last").launches() if record.result]
        finally:
            testbeds.down()
        within_s = sum(record.result.wall_ns for record in launches if record.result) / 1e9
        each_s = (sweep_s - within_s) / hosts
        mib = max(one_mib, other_mib)
        print(
            f"{hosts:5} {doctor_s:6.1f} s {sweep_s:6.1f} s {len(launches):8} {each_s:13.2f} s {mib:4.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
