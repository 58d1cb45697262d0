# SPDX-License-Identifier: BSD-3-Clause
"""Whether `cadge health` finds faults that are really there, and names nothing on healthy hosts.

Emulated hosts are made as root; before each run one fault is planted in h3, and taken away afterwards. htb on its data
device holds the first three, for cls_bpf is what small kernels have to tell packets apart:

  device   what h3 sends has a tenth of the rate (token bucket)
  pair     what h3 sends to h4 alone has
  loss     two in a hundred packets that h3 sends are lost
  busy     a loop in h3 takes processor time while an endpoint of h3 runs; hosts share processors otherwise

A run is right where it names what was planted and nothing else; one on healthy hosts, where it names nothing. The
campaigns stay in --results: those of healthy hosts are what slow_hosts.py draws from. Further options go to
`cadge health`. A run takes two minutes on a quiet machine of two processors, and on a busy one its answer is worth
nothing.

    python harness/bench/verdicts/health_faults.py --results DIR [--healthy 5] [--each 3] [--only busy]
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import killpg
from pathlib import Path
from signal import SIGKILL

from cadge_harness.testbed import testbeds
from cadge_harness.testbed.host_files import DATA_PREFIX

FAULTY, PEER = "h3", f"{DATA_PREFIX}.14"
HOSTS = 8
"""As many as the sweep `health` asks for, so that it takes the hosts where a fault is."""
HEALTHY = "healthy"
EXPECTED = {
    HEALTHY: ("All alike",),
    "device": ("h3 is slow",),
    "pair": ("link h3-h4 is slow",),
    "loss": ("h3 loses packets or stalls",),
    "busy": ("h3 is slow", "h3 loses packets or stalls"),
}
RATE = "500mbit"
TO_PEER = f"4,32 0 0 30,21 0 1 {int.from_bytes(bytes(map(int, PEER.split('.'))), 'big')},6 0 0 4294967295,6 0 0 0"
"""Classic BPF: packets whose IPv4 destination is h4."""
ONE_IN_50 = f"4,32 0 0 {0xFFFFF000 + 56},37 1 0 {2**32 // 50},6 0 0 4294967295,6 0 0 0"
"""Two in a hundred packets, by the kernel's random numbers."""
BUSY = """
import os, time
def runs():
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/comm') as name:
                if name.read().startswith('cadge-driver'):
                    return True
        except OSError:
            pass
    return False
while True:
    until = time.monotonic() + 0.02
    if not runs():
        time.sleep(0.005)
    else:
        while time.monotonic() < until:
            pass
"""


def host_pid(name: str) -> int:
    """Return the first process of an emulated host."""
    supervisor = testbeds.status()["pid"]
    for child in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text(encoding="ascii").split():
        found = subprocess.run(
            ["nsenter", "-t", child, "--uts", "hostname"], capture_output=True, text=True, check=True
        )
        if found.stdout.strip() == name:
            return int(child)
    raise SystemExit(f"no process of {name}")


@contextmanager
def shaped(inside: list[str], chosen: str, child: str) -> Iterator[None]:
    """Give packets that a program chooses, or all where there is none, a queue of their own."""
    tc = [*inside, "tc"]
    lines = [
        f"qdisc add dev data0 root handle 1: htb default {10 if chosen else 20}",
        "class add dev data0 parent 1: classid 1:10 htb rate 40gbit quantum 60000",
        "class add dev data0 parent 1: classid 1:20 htb rate 40gbit quantum 60000",
        f"qdisc add dev data0 parent 1:20 handle 20: {child}",
    ]
    subprocess.run([*tc, *lines[0].split()], check=True)
    try:
        for line in lines[1:]:
            subprocess.run([*tc, *line.split()], check=True)
        if chosen:
            where = "filter add dev data0 parent 1: protocol ip prio 1 bpf bytecode"
            subprocess.run([*tc, *where.split(), chosen, "classid", "1:20"], check=True)
        yield
    finally:
        subprocess.run([*tc, "qdisc", "del", "dev", "data0", "root"], check=True)


@contextmanager
def busy(inside: list[str]) -> Iterator[None]:
    """Let a loop run in the host."""
    loop = subprocess.Popen([*inside, "/usr/bin/python3", "-c", BUSY], start_new_session=True)
    try:
        yield
    finally:
        killpg(loop.pid, SIGKILL)  # nsenter has a child, which a signal to nsenter alone would leave behind
        loop.wait()


@contextmanager
def planted(fault: str) -> Iterator[None]:
    """Have a fault for a while."""
    inside = ["nsenter", "-t", str(host_pid(FAULTY)), "--net", "--pid", "--mount", "--"]
    bucket = f"tbf rate {RATE} burst 256kb latency 20ms"
    with ExitStack() as stack:
        if fault == "device":
            stack.enter_context(shaped(inside, "", bucket))
        elif fault == "pair":
            stack.enter_context(shaped(inside, TO_PEER, bucket))
        elif fault == "loss":
            stack.enter_context(shaped(inside, ONE_IN_50, "blackhole"))
        elif fault == "busy":
            stack.enter_context(busy(inside))
        yield


def answer(results: Path, own: list[str]) -> tuple[list[str], float]:
    """Return what `cadge health` says, and how long it takes."""
    begun = time.monotonic()
    argv = [sys.executable, "-m", "cadge_cli.cli", "health", "--testbed", "emulated", "--json"]
    done = subprocess.run([*argv, "--results", str(results), *own], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["data"]["found"]
    except (ValueError, LookupError, TypeError):
        raise SystemExit(
            f"cadge health ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
        ) from None
    return found, time.monotonic() - begun


def is_right(fault: str, found: list[str]) -> bool:
    """Tell whether an answer names what was planted, and nothing else."""
    return bool(found) and all(any(text.startswith(one) for one in EXPECTED[fault]) for text in found)


def main() -> None:
    """Print a line for each run, and a count for each fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--healthy", type=int, default=5)
    parser.add_argument("--each", type=int, default=3)
    parser.add_argument("--only", choices=EXPECTED, action="append")
    given, own = parser.parse_known_args()
    made = testbeds.up(HOSTS)["made"]
    try:
        for fault in given.only or EXPECTED:
            runs, right = given.healthy if fault == HEALTHY else given.each, 0
            for number in range(runs):
                with planted(fault):
                    found, took_s = answer(given.results, own)
                right += is_right(fault, found)
                verdict = "right" if is_right(fault, found) else "WRONG"
                print(f"{fault:8} {number + 1:2} {took_s:5.0f} s  {verdict}  {'; '.join(found)}", flush=True)
            print(f"{fault}: {right} of {runs} right", flush=True)
    finally:
        if made:
            testbeds.down()


if __name__ == "__main__":
    main()
