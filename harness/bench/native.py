# SPDX-License-Identifier: BSD-3-Clause
"""The native tools of the layers' own projects, run on this machine for one reading each.

Every function starts a server pinned to core 0 and a client pinned to core 1, over loopback or shared memory or between
two hosts, and returns the statistic that the tool itself prints, converted to nanoseconds of half a round trip or to
bytes per second.
"""

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 60


@dataclass(frozen=True, kw_only=True)
class Ends:
    """Where server and client run: what is put before their commands, and the server's address on which device."""

    server: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    device: str = "lo"
    server_cpu: int = 0
    client_cpu: int = 1


HERE = Ends()


class ToolError(Exception):
    """A native tool is missing, failed, or printed something else than expected."""


GUARD = (
    'exec 3<&0; "$@" </dev/null & tool=$!; { cat <&3 >/dev/null; kill -KILL $tool; } 2>/dev/null & guard=$!; '
    "wait $tool; status=$?; kill $guard 2>/dev/null; exit $status"
)
"""Runs a command until the standard input ends: on another host, where no signal of ours comes."""


@contextmanager
def _running(
    prefix: tuple[str, ...], cpu: int, command: list[str], env: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a command behind a prefix, pinned; it ends with the block at the latest."""
    pinned = ["env", *(f"{name}={value}" for name, value in env.items()), "taskset", "-c", str(cpu), *command]
    guarded = ["sh", "-c", GUARD, "sh", *pinned]
    argv = [*prefix, *map(shlex.quote, guarded)] if prefix else guarded
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            argv, stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
    finally:
        os.close(reading)
    try:
        yield process
    finally:
        os.close(writing)
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@contextmanager
def server(ends: Ends, command: list[str], env: dict[str, str]) -> Iterator[None]:
    """Run a server for the duration of the block, pinned to its core."""
    with _running(ends.server, ends.server_cpu, command, env):
        time.sleep(0.3)  # these tools have no way to say that they listen
        yield


def client(ends: Ends, command: list[str], env: dict[str, str]) -> str:
    """Run a client, pinned to its core, and return what it printed."""
    with _running(ends.client, ends.client_cpu, command, env) as process:
        try:
            out, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"{command[0]} did not end within {TIMEOUT_S} s") from error
    if process.returncode != 0:
        raise ToolError(f"{command[0]} ended with {process.returncode}: {out.strip()[-300:]}")
    return out


def last_numbers(text: str, least: int) -> list[float]:
    """Return the numbers of the last line that holds at least `least` of them and nothing else."""
    for line in reversed(text.splitlines()):
        words = line.replace(",", " ").split()
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            continue
        if len(numbers) >= least:
            return numbers
    raise ToolError(f"no line of {least} numbers in: {text.strip()[-300:]}")


def ucx_latency(port: int, size_bytes: int, transports: str, test: str = "ucp_am_lat", ends: Ends = HERE) -> float:
    """`ucx_perftest -t ucp_am_lat` (or another ping-pong of its): median half round trip, ns."""
    env = {"UCX_NET_DEVICES": ends.device, **({"UCX_TLS": transports} if transports else {})}
    rounds = 60000 if size_bytes <= 1024 and ends.device == "lo" else 10000
    command = [
        "ucx_perftest",
        "-t",
        test,
        "-s",
        str(size_bytes),
        "-n",
        str(rounds),
        "-w",
        str(rounds // 10),
        "-f",
        "-v",
        "-p",
        str(port),
    ]
    with server(ends, command, env):
        return last_numbers(client(ends, [*command, ends.address], env), 8)[1] * 1e3


def ucx_bandwidth(port: int, size_bytes: int, transports: str, window: int, ends: Ends = HERE) -> float:
    """`ucx_perftest -t tag_bw`: overall bytes per second, with `window` sends under way, all from one buffer."""
    env = {"UCX_NET_DEVICES": ends.device, **({"UCX_TLS": transports} if transports else {})}
    command = [
        "ucx_perftest",
        "-t",
        "tag_bw",
        "-s",
        str(size_bytes),
        "-n",
        "3000",
        "-w",
        "300",
        "-O",
        str(window),
        "-f",
        "-v",
        "-p",
        str(port),
    ]
    with server(ends, command, env):
        return last_numbers(client(ends, [*command, ends.address], env), 8)[5] * 2**20


def ofi_latency(port: int, size_bytes: int, provider: str, ends: Ends = HERE) -> float:
    """`fi_pingpong`: mean half round trip, ns."""
    env = {"FI_TCP_IFACE": ends.device}
    command = [
        "fi_pingpong",
        "-p",
        provider,
        "-e",
        "rdm",
        "-I",
        "60000" if ends.device == "lo" else "10000",
        "-S",
        str(size_bytes),
        "-B",
        str(port),
    ]
    with server(ends, command, env):
        out = client(ends, [*command[:-2], "-P", str(port), ends.address], env)
    fields = out.strip().splitlines()[-1].split()
    if len(fields) < 7:
        raise ToolError(f"fi_pingpong printed: {out.strip()[-300:]}")
    return float(fields[-2]) * 1e3


def mpi_latency(port: int, size_bytes: int) -> float:
    """`NPopenmpi -a`: half round trip of its best trial, ns."""
    del port
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "np.out"
        env = {**os.environ}
        if os.geteuid() == 0:
            env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [
            "mpirun", "-n", "2", "--bind-to", "core", "--oversubscribe",
            "NPopenmpi", "-a", "-l", str(size_bytes), "-u", str(size_bytes), "-p", "0", "-o", str(out),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=env)
        if done.returncode != 0:
            raise ToolError(f"NPopenmpi ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return last_numbers(out.read_text(), 3)[2] * 1e9


def sockperf_latency(port: int, size_bytes: int, ends: Ends = HERE, *, udp: bool = False) -> float:
    """`sockperf ping-pong --nonblocked`, over TCP or UDP: median half round trip, ns."""
    where = ["-i", ends.address, "-p", str(port), *([] if udp else ["--tcp"]), "--nonblocked"]
    with server(ends, ["sockperf", "server", *where], {}):
        out = client(ends, ["sockperf", "ping-pong", *where, "-m", str(size_bytes), "-t", "1"], {})
    match = re.search(r"percentile 50\.000 *= *([0-9.]+)", out)
    if not match:
        raise ToolError(f"sockperf printed: {out.strip()[-300:]}")
    return float(match.group(1)) * 1e3


def iperf_bandwidth(port: int, size_bytes: int, ends: Ends = HERE) -> float:
    """`iperf3`: bytes per second at the receiver."""
    with server(ends, ["iperf3", "-s", "-1", "-B", ends.address, "-p", str(port)], {}):
        command = ["iperf3", "-c", ends.address, "-p", str(port), "-t", "1", "-l", str(size_bytes), "-J"]
        out = client(ends, command, {})
    return float(json.loads(out)["end"]["sum_received"]["bits_per_second"]) / 8
