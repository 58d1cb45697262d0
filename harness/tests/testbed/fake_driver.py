#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Obeys the command line of cadge-driver without measuring anything; the launch's settings say how to behave.

Of a layer it says what stands in the layer's file, as JSON; one with nothing in it can be loaded.

While it runs, endpoint 0 keeps a file where UCX keeps its shared memory.

fake.mode: ok (default), hang (endpoint 0 never ends), crash (endpoint fake.who aborts; 1 by default), refuse, silent
(ends well, writes no result), busy_port (the result says that no port is free, unless the launch's first port is not
fake.first_port), argument (endpoint fake.who refuses its launch file), grandchild (endpoint 0 starts a process of its
own session that would stay), shm (endpoint 0 makes a file as libfabric does and a SysV segment as well, says in
fake.note where, and hangs), late_crash (endpoint fake.who aborts when the result is written), late_exit (it exits with
status 9 then).
fake.look: folder where every endpoint writes its environment, its working folder, and what is in that and in its home.
fake.sleep_ms: how long a launch takes. fake.ledger: where endpoint 0 adds the launch's name when it has written its
result. fake.pidfile: where every endpoint appends its process number.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


def connect(address: tuple[str, int], deadline: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(address, timeout=1)
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(4)
            time.sleep(0.02)


def meet(endpoint: int, others: int, oob: str, token: bytes, deadline: float) -> list[socket.socket]:
    """Endpoint 0 listens; all others connect to it."""
    host, _, port = oob.rpartition(":")
    peers = []
    if endpoint == 0:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(others)
        for _ in range(others):
            listener.settimeout(max(0.1, deadline - time.monotonic()))
            peers.append(listener.accept()[0])
    else:
        peers.append(connect((host, int(port)), deadline))
    for peer in peers:
        peer.sendall(token)
        peer.settimeout(max(0.1, deadline - time.monotonic()))
        if peer.recv(len(token), socket.MSG_WAITALL) != token:
            sys.exit(4)
    return peers


def end_late(mode: str) -> None:
    """End badly, after everything went well."""
    if mode == "late_crash":
        os.abort()
    if mode == "late_exit":
        sys.exit(9)


def look(folder: Path, endpoint: int) -> None:
    """Write down what a library would find."""
    home = Path(os.environ.get("HOME", "/none"))
    found = {
        "environment": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109 - as text
        "files": sorted(os.listdir()),  # noqa: PTH208 - as text
        "home": sorted(os.listdir(home)),  # noqa: PTH208
    }
    (folder / f"{endpoint}.json").write_text(json.dumps(found))


def main() -> int:
    if sys.argv[1] == "version":
        print(
            json.dumps(
                {"version": "0.1.0", "abi": 1, "schema": "cadge.result/2", "compiler": "none", "revision": "fake"}
            )
        )
        return 0
    if sys.argv[1] == "describe":
        module = Path(option("--modules"), f"{option('--layer')}.so").read_text()
        print(module or json.dumps({"table": {"library": {"name": "Fake", "stated_version": "1"}}, "reason": None}))
        return 0
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    launch = json.loads(Path(option("--launch")).read_text())
    endpoint = int(option("--endpoint"))
    settings = launch["settings"]
    mode = settings.get("fake.mode", "ok")
    deadline = time.monotonic() + launch["deadline_ms"] / 1000
    if "fake.pidfile" in settings:
        with Path(settings["fake.pidfile"]).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if "fake.look" in settings:
        look(Path(settings["fake.look"]), endpoint)
    busy = mode == "busy_port" and launch["ports"][0] == int(settings["fake.first_port"])
    chosen = endpoint == int(settings.get("fake.who", "1"))
    if chosen:
        if mode == "crash":
            os.abort()
        if mode == "argument":
            print("cadge-driver: launch file: points[0]: rpc: depth: 8192 is more than 4096", flush=True)
            return 2
    peers = []
    if len(launch["endpoints"]) > 1:
        token = Path(option("--token-file")).read_bytes().strip()
        peers = meet(endpoint, len(launch["endpoints"]) - 1, option("--oob"), token, deadline)
    if endpoint > 0:
        peers[0].settimeout(None)
        told = peers[0].recv(3, socket.MSG_WAITALL)
        if chosen and mode.startswith("late_"):
            peers[0].recv(1)  # until endpoint 0, which has written the result by then, is gone
            end_late(mode)
        return 0 if told == b"bye" else 4
    memory = Path(os.environ.get("UCX_POSIX_DIR", "/dev/shm"), f"fake-{os.getpid()}")
    memory.write_text("in use")
    if mode == "shm":
        libfabric = Path(f"/dev/shm/{os.getpid()}:{os.geteuid()}:0")
        libfabric.write_text("in use")
        segment = ctypes.CDLL(None).shmget(0, 4096, 0o1600)
        Path(settings["fake.note"]).write_text(json.dumps({"made": [str(memory), str(libfabric)], "segment": segment}))
    if mode in ("hang", "shm"):
        time.sleep(3600)
    if mode == "grandchild":
        subprocess.Popen(["sleep", "3600"], start_new_session=True, stdin=subprocess.DEVNULL)
    time.sleep(int(settings.get("fake.sleep_ms", "20")) / 1000)
    memory.unlink()
    for peer in peers:
        peer.sendall(b"bye")
    if mode == "silent":
        return 0
    status, reason, code = "done", None, None
    if mode == "refuse":
        status, reason, code = "refused", "it does not want to", "NO_CAP"
    if busy:
        status, reason, code = "failed", "endpoint 0: no port between 18600 and 18645 is free", "PORT"
    result = {
        "schema": "cadge.result/2",
        "launch_id": launch["launch_id"],
        "status": status,
        "reason": reason,
        "reason_code": code,
        "attempts": [],
        "pid": os.getpid(),
    }
    out = Path(option("--out"))
    out.with_suffix(".part").write_text(json.dumps(result))
    out.with_suffix(".part").replace(out)
    if "fake.ledger" in settings:
        with Path(settings["fake.ledger"]).open("a") as file:
            file.write(launch["launch_id"] + "\n")
    if chosen:
        end_late(mode)
    return 0 if status == "done" else 3


sys.exit(main())
