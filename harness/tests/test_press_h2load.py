# SPDX-License-Identifier: BSD-3-Clause
"""A closed loop of others beside ours: h2load against a node of the cluster web server, and against nginx.

A cross-check of the client, and no more: h2load has no open loop that would say when it cannot keep up, so that nothing
is measured with it.
"""

import contextlib
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from .test_driver_run import Json, Pair, need
from .test_press import cluster as cluster  # a fixture
from .test_press import site
from .test_press_nginx import FOLDERS, need_nginx, used_ns

pytestmark = [pytest.mark.alone, pytest.mark.long]

CONNECTIONS = 16
CACHE_KIB = 2048
FILES = CACHE_KIB * 1024 // 14200
"""As many files as a node makes of the workload's mean length."""
URIS = 5000
LISTENS = "0A"


def listening(pid: int) -> int:
    """Return the TCP port at which a process listens, which has one alone."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            sockets.add(entry.readlink().name)
    ports = [
        int(fields[1].rpartition(":")[2], 16)
        for fields in map(str.split, Path("/proc/net/tcp").read_text().splitlines()[1:])
        if fields[3] == LISTENS and f"socket:[{fields[9]}]" in sockets
    ]
    [port] = ports
    return port


def await_open_loop(client: Path) -> None:
    """Wait until a client has done its closed loop, which keeps it busy, and has next to nothing to do any more."""
    end = time.monotonic() + 30
    before = used_ns(client)
    while time.monotonic() < end:
        time.sleep(0.1)
        now = used_ns(client)
        if now > 200_000_000 and now - before < 20_000_000:
            return
        before = now
    pytest.fail("the client is never at rest")


def rate_of_h2load(port: int, uris: Path) -> float:
    argv = ["h2load", "--h1", "--duration=1", f"--clients={CONNECTIONS}", f"--input-file={uris}"]
    argv.append(f"--base-uri=http://127.0.0.1:{port}")
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout
    codes = re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", said)
    rate = re.search(r"finished in [\d.]+m?s, ([\d.]+) req/s", said)
    assert codes is not None, said
    assert rate is not None, said
    return float(rate[1])


def document(server: str) -> Json:
    # nothing but HTTP is TCP there; with nginx the layer is the one that the planner allows
    layer = "sockets-unix" if server == "press" else "sockets-tcp"
    need(layer)
    made = site(layer, nodes=1, duration=4000, load_percent=1, server=server, working_percent=100)
    made["points"][0]["workload"]["parameters"] |= {"cache_kib": CACHE_KIB, "connections": CONNECTIONS}
    return made


@pytest.mark.parametrize("server", ["press", "nginx"])
def test_a_closed_loop_of_others(cluster: Pair, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many connections, files as popular: the rates are alike, as far as those of two clients can be."""
    if shutil.which("h2load") is None:
        pytest.skip("h2load is not installed (Debian's package nghttp2-client)")
    if server == "nginx":
        need_nginx()
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv("PATH", FOLDERS)
    uris = tmp_path / "uris"
    asked = random.Random(1).choices(range(FILES), [(i + 1) ** -0.8 for i in range(FILES)], k=URIS)
    uris.write_text("".join(f"/f/{file}\n" for file in asked))
    launch = document(server)
    client, node = (cluster.start(number, launch) for number in range(2))
    await_open_loop(Path(f"/proc/{client.pid}"))
    if server == "press":
        port = listening(node.pid)
    else:
        [configuration] = place.glob("*/nginx.conf")
        front = re.search(r"listen [\d.]+:(\d+)", configuration.read_text())
        assert front is not None
        port = int(front[1])
    theirs = rate_of_h2load(port, uris)
    errors = [process.communicate(timeout=60)[1] for process in (client, node)]
    assert [process.returncode for process in (client, node)] == [0, 0], errors
    [attempt] = cluster.result()["attempts"]
    # requests that the client has not sent are seen by who carries them out, where that counts them
    failed = {check["name"] for check in attempt["checks"] if not check["ok"]}
    assert failed == ({"executions"} if server == "press" else set()), attempt["reason"]
    [loop] = attempt["quantities"]["closed_loop"]
    ours = loop["amount"] / loop["elapsed_ns"] * 1e9
    print(f"{server}: h2load {theirs:.0f}/s, our closed loop {ours:.0f}/s")
    assert 1 / 5 < theirs / ours < 5
