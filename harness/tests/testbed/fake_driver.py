#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Obeys the command line of cadge-driver without measuring anything; the launch's settings say how to behave.

While it runs, endpoint 0 keeps a file where UCX keeps its shared memory.

fake.mode: ok (default), hang (endpoint 0 never ends), crash (endpoint 1 aborts), refuse, silent (ends well, writes no
result), busy_port (says that a port is taken, unless the launch's first port is the block's second half), grandchild
(endpoint 0 starts a process of its own session that would stay), shm (endpoint 0 makes a file as libfabric does and a
SysV segment as well, says in fake.note where, and hangs).
fake.sleep_ms: how long a launch takes. fake.ledger: where endpoint 0 adds the launch's name when it has written its
result. fake.pidfile: where endpoint 0 and 1 append their process numbers.
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


def pair(endpoint: int, oob: str, token: bytes, deadline: float) -> socket.socket:
    host, _, port = oob.rpartition(":")
    if endpoint == 1:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(1)
        listener.settimeout(max(0.1, deadline - time.monotonic()))
        peer, _ = listener.accept()
    else:
        peer = connect((host, int(port)), deadline)
    peer.sendall(token)
    peer.settimeout(5)
    if peer.recv(len(token), socket.MSG_WAITALL) != token:
        sys.exit(4)
    return peer


def main() -> int:
    if sys.argv[1] == "version":
        print(
            json.dumps(
                {"version": "0.1.0", "abi": 1, "schema": "cadge.result/1", "compiler": "none", "revision": "fake"}
            )
        )
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
    if mode == "busy_port" and launch["ports"][0] == int(settings["fake.first_port"]):
        print("cannot bind: Address already in use", flush=True)
        return 3
    if mode == "crash" and endpoint == 1:
        os.abort()
    peer = None
    if len(launch["endpoints"]) > 1:
        token = Path(option("--token-file")).read_bytes().strip()
        peer = pair(endpoint, option("--oob"), token, deadline)
    if endpoint == 1:
        peer.settimeout(None)
        return 0 if peer.recv(3, socket.MSG_WAITALL) == b"bye" else 4
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
    if peer is not None:
        peer.sendall(b"bye")
    if mode == "silent":
        return 0
    status = "refused" if mode == "refuse" else "done"
    result = {
        "schema": "cadge.result/1",
        "launch_id": launch["launch_id"],
        "status": status,
        "reason": "it does not want to" if mode == "refuse" else None,
        "reason_code": "NO_CAP" if mode == "refuse" else None,
        "attempts": [],
        "pid": os.getpid(),
    }
    out = Path(option("--out"))
    out.with_suffix(".part").write_text(json.dumps(result))
    out.with_suffix(".part").replace(out)
    if "fake.ledger" in settings:
        with Path(settings["fake.ledger"]).open("a") as file:
            file.write(launch["launch_id"] + "\n")
    return 3 if mode == "refuse" else 0


sys.exit(main())
