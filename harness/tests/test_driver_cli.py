# SPDX-License-Identifier: BSD-3-Clause
"""The driver's command line: arguments, describe, version, help."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BUILD = Path(os.environ.get("CADGE_BUILD", Path(__file__).parents[2] / "build"))
DRIVER = BUILD / "bin" / "cadge-driver"
LAYERS = BUILD / "layers"

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason=f"{DRIVER} is not built")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "a command is missing"),
        (["fly"], "unknown command"),
        (["run", "--speed", "9"], "unknown argument '--speed'"),
        (["run", "--launch"], "--launch needs a value"),
        (["run", "--launch", "/none", "--endpoint", "64"], "--endpoint must be a number from 0 to 63"),
        (["run", "--launch", "/none", "--endpoint", "-1"], "--endpoint must be a number from 0 to 63"),
        (["run", "--launch", "/none", "--endpoint", "0"], "No such file"),
        (["describe", "--layer", "x"], "needs --modules"),
    ],
)
def test_bad_arguments(arguments: list[str], says: str) -> None:
    done = subprocess.run([DRIVER, *arguments], capture_output=True, text=True, timeout=10, check=False)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("layer", ["native-ucx", "native-ofi", "peregrine-shm"])
def test_a_limit_of_files_is_an_error_of_the_layer(layer: str) -> None:
    """Shared memory is a file: beyond `ulimit -f` the kernel ends who makes one, unless it is told not to."""
    if not (LAYERS / f"{layer}.so").exists():
        pytest.skip(f"layer {layer} is not built in {LAYERS}")
    describe = [DRIVER, "describe", "--modules", str(LAYERS), "--layer", layer]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 64; exec "$@"', "bash", *describe],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    row = next(row for row in json.loads(done.stdout)["opens"] if (row["place"], row["wait"]) == ("within", "poll"))
    assert not row["opens"]
    assert "crashed" not in row["reason"]


def test_describe_and_version() -> None:
    if not (LAYERS / "sockets-tcp.so").exists():
        pytest.skip(f"layer sockets-tcp is not built in {LAYERS}")

    def ask(*arguments: str, code: int = 0) -> dict[str, Any]:
        done = subprocess.run([DRIVER, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        return answer

    assert ask("version").keys() == {"version", "abi", "schema", "compiler", "revision"}
    description = ask("describe", "--modules", str(LAYERS), "--layer", "sockets-tcp")
    rows = {(row["place"], row["wait"]): row for row in description["opens"]}
    assert len(rows) == 6
    assert rows["within", "poll"]["opens"]
    assert "RELIABLE" in rows["within", "poll"]["caps"]
    assert rows["self", "poll"]["reason_code"] == "NO_CAP"
    assert description["table"]["name"] == "sockets-tcp"
    missing = ask("describe", "--modules", str(LAYERS), "--layer", "sockets-none", code=3)
    assert missing["reason_code"] == "BUILD_ABSENT"
    done = subprocess.run([DRIVER, "--help"], capture_output=True, text=True, timeout=10, check=True)
    assert "examples:" in done.stdout


def test_what_it_is_made_of_is_linked_in() -> None:
    """A node needs none of these libraries: the binary that is copied there brings them."""
    if not shutil.which("readelf"):
        pytest.skip("no readelf here")
    listed = subprocess.run(["readelf", "-d", DRIVER], capture_output=True, text=True, check=True, timeout=10).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", listed)
    assert any(name.startswith("libc.so") for name in needed)
    assert not [name for name in needed if name.startswith(("libjansson", "libsodium", "libz."))]
