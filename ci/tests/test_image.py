# SPDX-License-Identifier: BSD-3-Clause
"""The image of ci/image, as a container without options runs it: an ordinary user and 64 MB of shared memory."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTAINED = """
root=$1 && shift && mount --bind "$root" "$root" && cd "$root"
mount -t proc proc proc && mount -t sysfs -o ro sysfs sys && mount -t tmpfs tmpfs dev && mkdir dev/shm
for name in null zero random urandom; do touch "dev/$name" && mount --bind "/dev/$name" "dev/$name"; done
ln -s /proc/self/fd dev/fd && mount -t tmpfs -o mode=1777,size=64m tmpfs dev/shm && ip link set lo up
exec chroot . setpriv --reuid=1000 --regid=1000 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
  env -i -C /home/cadge HOME=/home/cadge PATH=/usr/local/bin:/usr/bin:/bin CADGE_RESULTS=/home/cadge/results "$@"
"""
"""What podman run --cap-drop=all gives, where no container can be run: this machine may be one itself."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes an image without user namespaces"),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="there is no buildah"),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="there is no mmdebstrap"),
]


def run(*argv: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1500, stdin=subprocess.DEVNULL
    )


def buildah(*words: str) -> str:
    done = run("buildah", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def mounted() -> Iterator[str]:
    """Make release and image, and return where a container of it is mounted."""
    for argv in (["ci/dist"], ["ci/image"]):
        done = run(*argv)
        assert done.returncode == 0, done.stderr[-2000:]
    name = buildah("from", "localhost/cadge")
    try:
        yield buildah("mount", name)
    finally:
        buildah("umount", name)
        buildah("rm", name)


def contained(mounted: str, *argv: str) -> "subprocess.CompletedProcess[str]":
    spaces = ["unshare", "--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "--propagation", "private"]
    return run(*spaces, "bash", "-euc", CONTAINED, "contained", mounted, *argv)


@pytest.mark.alone
def test_a_container_without_rights_compares_layers(mounted: str) -> None:
    done = contained(mounted, "cadge", "quick")
    assert done.returncode in (0, 1), done.stderr + done.stdout  # 1: other work let a launch run out of time
    assert "no number" not in done.stdout
    for layer in ("native-ucx", "native-ofi", "mpi-p2p", "peregrine-shm", "sockets-tcp"):
        assert layer in done.stdout
    assert "/dev/shm has 67 MB free" in done.stderr
    assert "--shm-size=1g" in done.stderr


@pytest.mark.alone
def test_a_layer_that_wants_more_memory_says_how_much_there_is(mounted: str) -> None:
    done = contained(
        mounted, "cadge", "run", "--testbed", "local", "--sweep", "smoke", "--layers", "am-mpi", "--no-report"
    )
    assert "MPI_ERR_WIN" in done.stderr
    assert "(/dev/shm of localhost has 67 MB, of which " in done.stderr


def test_every_layer_can_be_loaded_in_the_image(mounted: str) -> None:
    done = contained(mounted, "cadge", "doctor")
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if line.split()[1:2] in (["D21"], ["D22"], ["D23"])] == []
