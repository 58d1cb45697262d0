# SPDX-License-Identifier: BSD-3-Clause
"""Writes into another process's memory beside one memcpy, over buffers that the caches do not hold, and that they do.

Each round runs every layer that has put, and the copy, in random order: rounds of 16 puts and a quiet of the pattern
onesided, within a host, on core 1. The copy is libc's memcpy on the same core, from private memory into shared memory,
over as many bytes in turn. The share is the copy's time by the layer's, within a round: 1 is as fast as the copy.
Printed are medians over rounds, with the rank interval of the share. `same` buffers are 16, which rotate as well, but
stay in the caches where these are larger.

    python harness/bench/puts.py --rounds 11
    python harness/bench/puts.py --layers rdma-ucx vmmc-ucx pm-ucx --bytes 65536
"""

import argparse
import ctypes
import mmap
import multiprocessing
import os
import random
import statistics
import time
from multiprocessing.connection import Connection

import ours
from tax import rank_interval

from cadge_results.formats.histogram import decode

DEPTH = 16
SPREAD_BYTES = 1 << 27
COPIES = "memcpy"


def layers_with_put() -> list[str]:
    """Return the layers whose modules may have put within a host."""
    return [
        path.stem for path in sorted(ours.MODULES.glob("*.so")) if path.stem.split("-")[0] in ("rdma", "vmmc", "pm")
    ]


def _copy(size: int, spread_bytes: int, seconds: float, to: Connection) -> None:
    """Copy on core 1 over so many bytes in turn, and send the median time of a round of DEPTH copies, in ns."""
    os.sched_setaffinity(0, {1})
    memcpy = ctypes.CDLL(None).memcpy
    memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    count = max(spread_bytes // size, DEPTH)
    source = mmap.mmap(-1, count * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    target = mmap.mmap(-1, count * size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    at_source, at_target = (ctypes.addressof(ctypes.c_char.from_buffer(each)) for each in (source, target))
    ctypes.memset(at_source, 1, count * size)
    ctypes.memset(at_target, 2, count * size)
    times, turn, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter_ns()
        for _ in range(DEPTH):
            memcpy(at_target + turn * size, at_source + turn * size, size)
            turn = (turn + 1) % count
        times.append(time.perf_counter_ns() - began)
    to.send(statistics.median(times))


def copy_ns(size: int, spread_bytes: int) -> float:
    """Return the time of a round of copies, in a process of its own."""
    ours_end, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_copy, args=(size, spread_bytes, 0.3, theirs))
    process.start()
    found: float = ours_end.recv()
    process.join()
    return found


def puts_ns(layer: str, size: int, spread_bytes: int, port: int) -> float | None:
    """Return the time of a round of puts until it is visible; None where the layer cannot do it."""
    point = ours.point("onesided", 300, bytes=size, operation="put", depth=DEPTH, target="active", spread=spread_bytes)
    (attempt,) = ours.run(ours.launch_document(layer, "within", {}, [point], "direct"), port, some=True)
    if not attempt:
        return None
    (visible,) = attempt["quantities"]["visible"]
    return decode(visible["histogram"]).percentile(100 * (1 - 1 / (2 * DEPTH)))  # the first put of each round


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", nargs="+", help="default: all of rdma, vmmc and pm that are built")
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    order = random.Random(arguments.seed)  # noqa: S311 - order of measurement, not a secret
    subjects = [COPIES, *(arguments.layers or layers_with_put())]
    print(f"{DEPTH} writes of {arguments.bytes} bytes: us, and the copy's time by the layer's")
    for name, spread_bytes in (("spread", SPREAD_BYTES), ("same", 0)):
        rounds: list[dict[str, float | None]] = []
        for number in range(arguments.rounds):
            found: dict[str, float | None] = {}
            for subject in order.sample(subjects, len(subjects)):
                if subject == COPIES:
                    found[subject] = copy_ns(arguments.bytes, spread_bytes)
                else:
                    found[subject] = puts_ns(subject, arguments.bytes, spread_bytes, 18600 + number % 50)
            rounds.append(found)
        for subject in subjects:
            pairs = [(one[COPIES], one[subject]) for one in rounds]
            both = [(copy, layer) for copy, layer in pairs if copy and layer]
            if not both:
                print(f"{subject:12} {name:6} no figures")
                continue
            shares = [copy / layer for copy, layer in both]
            low, high, _ = rank_interval(shares)
            middle = statistics.median(layer for _, layer in both) / 1000
            share = f"{statistics.median(shares):.3f} [{low:.3f}, {high:.3f}] of {len(both)}"
            print(f"{subject:12} {name:6} {middle:10.1f} {share}", flush=True)


if __name__ == "__main__":
    main()
