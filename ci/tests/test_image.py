# SPDX-License-Identifier: BSD-3-Clause
"""The image of ci/image, as Podman runs it without options (a user, 64 MB of shared memory), and by Charliecloud."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALONE = """
if [ -d /sys/fs/cgroup/unified ]; then umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; fi
exec podman --cgroup-manager cgroupfs --events-backend file run --cgroups disabled --network none "$@"
"""
"""Podman, also where this machine is a container: crun refuses a mixture of cgroups, and there may be none to use."""
LIMITS = [f"--ulimit={name}=1000:1000" for name in ("nofile", "nproc")]  # Podman's own are higher than ours may be
USER = 1000
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--bounding-set=-all", "--no-new-privs"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes an image without user namespaces"),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="there is no buildah"),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="there is no mmdebstrap"),
    pytest.mark.skipif(shutil.which("podman") is None, reason="there is no podman"),
]


def run(*argv: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1500, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module", autouse=True)
def _image() -> None:
    """Make release and image."""
    for argv in (["ci/dist"], ["ci/image"]):
        done = run(*argv)
        assert done.returncode == 0, done.stderr[-2000:]


def contained(*words: str) -> "subprocess.CompletedProcess[str]":
    return run("unshare", "--mount", "sh", "-euc", ALONE, "podman", "--rm", "--cap-drop=all", *LIMITS, "cadge", *words)


@pytest.mark.alone
def test_a_container_without_rights_compares_layers() -> None:
    done = contained("quick")
    assert done.returncode in (0, 1), done.stderr + done.stdout  # 1: other work let a launch run out of time
    assert "no number" not in done.stdout
    for layer in ("native-ucx", "native-ofi", "mpi-p2p", "peregrine-shm", "sockets-tcp"):
        assert layer in done.stdout
    assert "/dev/shm has 66 MB free" in done.stderr
    assert "--shm-size=1g" in done.stderr


@pytest.mark.alone
def test_a_layer_that_wants_more_memory_says_how_much_there_is() -> None:
    done = contained("run", "--testbed", "local", "--sweep", "smoke", "--layers", "am-mpi", "--no-report")
    assert "MPI_ERR_WIN" in done.stderr
    assert "(/dev/shm of localhost has 66 MB, of which " in done.stderr


def test_every_layer_can_be_loaded_in_the_image() -> None:
    done = contained("doctor")
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if line.split()[1:2] in (["D21"], ["D22"], ["D23"])] == []


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("ch-run") is None, reason="there is no Charliecloud")
def test_charliecloud_runs_the_image_as_a_user() -> None:
    """Its files are read-only; home, environment and shared memory are the host's. The commands are CLUSTER.md's."""
    page = (ROOT / "playbooks/CLUSTER.md").read_text()
    packing, unpacking, running = (
        line.partition("  #")[0] for line in page.splitlines() if re.search("^ch-|ch-run", line)
    )
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)
        packed = run("sh", "-c", f"cd {home} && {packing}")
        assert packed.returncode == 0, packed.stderr[-2000:]
        os.chown(home, USER, USER)
        variables = [f"HOME={home}", "USER=somebody", "PATH=/usr/local/bin:/usr/bin:/bin"]
        script = f"cd && {unpacking} && {running.replace('run --testbed local', 'quick')}"
        done = run(*AS_USER, "env", "-i", *variables, "sh", "-euc", script)
        assert done.returncode in (0, 1), done.stderr + done.stdout  # 1: other work let a launch run out of time
        assert "no number" not in done.stdout
        for layer in ("native-ucx", "native-ofi", "mpi-p2p", "peregrine-shm", "sockets-tcp"):
            assert layer in done.stdout
        assert list(home.glob("results/*"))
