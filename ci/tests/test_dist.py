# SPDX-License-Identifier: BSD-3-Clause
"""The binary release: what is in it, that the same inputs give the same bytes, and that it works wherever it is put."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from cadge_results import Store

ROOT = Path(__file__).resolve().parents[2]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("CADGE_", "MAKE", "GIT_", "XDG_"))}


def run(*argv: str | Path, where: Path = ROOT, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv, cwd=where, env={**CLEAN, **variables}, capture_output=True, text=True, check=False, timeout=1500,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def made(where: Path, *options: str | Path, checkout: Path = ROOT, umask: int = 0o022, **variables: str) -> Path:
    """Make a release in a folder; returns its archive."""
    argv = ["sh", "-c", f'umask {umask:o} && exec "$@"', "sh", checkout / "ci/dist", "--to", where, *options]
    done = run(*argv, where=checkout, **variables)
    assert done.returncode == 0, done.stderr
    [archive] = where.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (ROOT / "build/bin/cadge-driver").is_file():
        pytest.skip("nothing is built")
    return made(tmp_path_factory.mktemp("dist"), "--of", "build")


@pytest.fixture(scope="module")
def tree(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an unpacked release, in a folder with a space in its name, with an environment that is ready."""
    return unpacked(archive, tmp_path_factory.mktemp("a release"))


def unpacked(archive: Path, folder: Path) -> Path:
    assert run("tar", "-xf", archive, "-C", folder).returncode == 0
    [tree] = folder.iterdir()
    sources = [str(tree / part) for part in ("harness/src", "results/src", "analysis/src")]
    program = tree / ".venv/bin/cadge"
    program.parent.mkdir(parents=True)
    code = f"import sys\nsys.path[:0] = {sources}\nfrom cadge_cli.cli import main\nmain()\n"
    program.write_text(f"#!{sys.executable}\n{code}")
    program.chmod(0o755)
    stamp = run(tree / "ci/venv", "--stamp", sys.executable, "ci/requirements.lock")
    (tree / ".venv/cadge-stamp").write_text(stamp.stdout)
    return tree


def cadge(tree: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return run(tree / "bin/cadge", *words, where=tree.parent, CADGE_PYTHON=sys.executable, **variables)


def test_a_release_has_what_runs_and_nothing_of_what_builds(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
    top = archive.name.removesuffix(".tar.gz")
    assert {member.name.partition("/")[0] for member in members} == {top}
    names = {member.name.removeprefix(f"{top}/") for member in members if member.isfile()}
    assert names >= {
        "bin/cadge",
        "build/bin/cadge-driver",
        "build/layers/sockets-tcp.so",
        "LICENSE",
        "RELEASE",
        "REVISION",
    }
    assert names >= {
        "playbooks/site.yml",
        "harness/agent/__main__.py",
        "harness/sweeps/default.yml",
        "ci/requirements.lock",
        "ci/requirements-queries.lock",
    }
    assert [
        name for name in names if "/tests/" in name or name.startswith(("build/obj", ".git", "results/campaigns"))
    ] == []
    assert [name for name in names if name.endswith((".mk", ".o", ".a", ".pyc"))] == []
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}
    assert {member.mode for member in members} <= {0o755, 0o644}
    assert len({member.mtime for member in members}) == 1
    sums = (archive.parent / "SHA256SUMS").read_text()
    assert sums == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n"


def test_the_same_files_give_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    again = made(tmp_path, "--of", "build", umask=0o077, TZ="Asia/Tokyo", LC_ALL="C")
    assert again.read_bytes() == archive.read_bytes()


def test_a_release_says_what_it_is_and_needs(tree: Path) -> None:
    said = (tree / "RELEASE").read_text()
    revision = run("git", "rev-parse", "HEAD").stdout.strip()
    assert (tree / "REVISION").read_text().strip().removesuffix("-dirty") == revision
    assert re.search(rf"^revision +{revision}", said, re.MULTILINE)
    assert re.search(r"^libc +GLIBC \d+\.\d+ or newer", said, re.MULTILINE)
    for name in ("compiler", "built", "Python"):
        assert re.search(rf"^{name} +\S", said, re.MULTILINE)
    listed = dict(line.split(maxsplit=1) for line in said.splitlines() if re.match(r"[a-z]+-\w+ ", line))
    assert listed.keys() == {path.stem for path in (tree / "build/layers").iterdir()}
    assert listed["sockets-tcp"] == "none"
    if (tree / "build/layers/native-ucx.so").exists():
        assert listed["native-ucx"].endswith("libucs.so.0 (libucx0)")


def test_a_release_works_wherever_it_is_put(tree: Path) -> None:
    done = cadge(tree, "layers", "sockets-tcp")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^built here +yes$", done.stdout, re.MULTILINE), done.stdout
    moved = tree.rename(tree.with_name("moved"))
    done = cadge(moved, "--version", PIP_NO_INDEX="1", PIP_FIND_LINKS="/nonexistent")
    assert done.returncode == 3  # an environment has the place of its tree in it
    assert "cadge: installing" in done.stderr
    assert "pip could not install them. Without a network: 'pip download -r ci/requirements.lock" in done.stderr
    assert not (moved / ".venv").exists()
    moved.rename(tree)


def test_what_a_release_says_is_of_a_release(tree: Path) -> None:
    """Nothing calls it a checkout, and no command is named that it does not have."""
    for words in (["doctor"], ["run", "--help"], ["layers"], ["sweeps"], ["query", "SELECT 1"], ["testbed", "status"]):
        done = cadge(tree, *words)
        said = done.stdout + done.stderr
        assert not re.search(r"\bcheckout\b|\bmake (build|setup|dist)\b|(?<!/)\.venv/", said), said
    assert f"release {tree}" in cadge(tree, "doctor").stdout


def test_a_machine_without_a_python_is_told_so(tree: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for python in (old, tmp_path / "none"):
        done = run(tree / "bin/cadge", "--version", CADGE_PYTHON=str(python))
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith("cadge: there is no Python 3.11 or newer here. Install one")


@pytest.mark.parametrize(("before", "left"), [("Python 3.11.2", True), ("Python 3.12.1", False)])
def test_another_python_gets_an_environment_anew(before: str, left: bool, tree: Path, tmp_path: Path) -> None:
    """Python 3.12 could not bring one of 3.11 up to date: its pip is another's."""
    folder = tmp_path / "environment"
    folder.mkdir()
    (folder / "cadge-stamp").write_text(f"{tree}\n{before}\nolder lock\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" != -V ] || exec echo Python 3.11.2\nls "{folder}" >"{folder}.seen"\nexit 1\n')
    python.chmod(0o755)
    assert run(tree / "ci/venv", python, folder, "ci/requirements.lock").returncode == 1
    assert (tmp_path / "environment.seen").read_text() == "cadge-stamp\n" * left


LAYERS = ("sockets-tcp", "native-ucx", "native-zmq", "am-ofi", "peregrine-xdp")
BROUGHT = ("sockets-tcp", "mpi-p2p")
SWEEP = """\
schema: cadge.sweep/2
title: a release between hosts
layers: all
baseline: sockets-tcp
patterns:
  - {pattern: rpc, request_bytes: 8B}
places: between
waits: poll
launches: 1
duration: 40ms
twin: none
"""
HIDDEN = """
for name in cc gcc c++ g++ clang clang++ ld make pkg-config; do
  path=$(readlink -f "/usr/bin/$name")
  [ ! -e "$path" ] || mount --bind /dev/null "$path"
done
for folder in "$0/build" "$0/layers"; do mount -t tmpfs -o ro none "$folder"; done
exec "$@"
"""


def measured(results: Path) -> dict[str, list[str]]:
    """Return the states of a campaign's attempts, by layer or floor."""
    found: dict[str, list[str]] = {}
    for record in Store(results).open("last").launches():
        assert record.result is not None, record
        found[record.launch.subject.layer] = [str(attempt.status) for attempt in record.result.attempts]
    return found


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="hides the compilers in a mount namespace, as root")
def test_hosts_use_the_release_that_they_see(archive: Path, tmp_path: Path) -> None:
    """The controller is the release's own as well: no compiler, no sources of C and no build of the checkout."""
    tree, state = unpacked(archive, tmp_path), Path(tempfile.mkdtemp(prefix="ct-"))
    variables = {"CADGE_STATE": str(state), "CADGE_PYTHON": sys.executable}
    assert cadge(tree, "testbed", "up", CADGE_STATE=str(state)).returncode == 0
    try:
        now = json.loads(cadge(tree, "testbed", "status", "--json", CADGE_STATE=str(state)).stdout)["data"]
        inventory = json.loads((state / "inventory.json").read_text())
        for host in inventory["cadge"]["hosts"].values():
            host["cadge_build_path"] = str(tree / "build")
        (tree.parent / "hosts.json").write_text(json.dumps(inventory))
        (tree.parent / "five.yml").write_text(SWEEP)
        into = ["nsenter", f"--net=/proc/{now['pid']}/ns/net", "unshare", "--mount", "sh", "-euc", HIDDEN, ROOT]
        words = ["--no-report", "--no-queue", "--sweep", "five.yml", "--results", "results"]
        for where, layers in ((["--inventory", "hosts.json"], LAYERS), (["--testbed", "emulated"], BROUGHT)):
            argv = [tree / "bin/cadge", "run", *words, *where, "--layers", " ".join(layers)]
            done = run(*into, *argv, where=tree.parent, **variables)
            assert done.returncode in (0, 1), done.stderr  # 1: beside other work an attempt may be unsound
            found = measured(tree.parent / "results")
            assert {name for name in found if not name.startswith("floor-")} == set(layers)
            assert {status for name in layers for status in found[name]} <= {"done", "unsound"}, found
    finally:
        cadge(tree, "testbed", "down", CADGE_STATE=str(state))
        shutil.rmtree(state, ignore_errors=True)


@pytest.mark.long
def test_two_builds_at_different_places_give_the_same_bytes(tmp_path: Path) -> None:
    sums = []
    for name in ("one", "another/place"):
        checkout = tmp_path / name
        assert run("git", "clone", "-q", "--no-hardlinks", ROOT, checkout).returncode == 0
        (checkout / ".venv").symlink_to(ROOT / ".venv")
        sums.append((made(tmp_path / f"{name}-made", checkout=checkout).parent / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]
