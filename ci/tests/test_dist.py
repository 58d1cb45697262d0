# SPDX-License-Identifier: BSD-3-Clause
"""The binary release: what is in it, that the same inputs give the same bytes, and that it works wherever it is put."""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

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
    folder = tmp_path_factory.mktemp("a release")
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


def test_a_machine_without_a_python_is_told_so(tree: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for python in (old, tmp_path / "none"):
        done = run(tree / "bin/cadge", "--version", CADGE_PYTHON=str(python))
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith("cadge: there is no Python 3.11 or newer here. Install one")


@pytest.mark.long
def test_two_builds_at_different_places_give_the_same_bytes(tmp_path: Path) -> None:
    sums = []
    for name in ("one", "another/place"):
        checkout = tmp_path / name
        assert run("git", "clone", "-q", "--no-hardlinks", ROOT, checkout).returncode == 0
        (checkout / ".venv").symlink_to(ROOT / ".venv")
        sums.append((made(tmp_path / f"{name}-made", checkout=checkout).parent / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]
