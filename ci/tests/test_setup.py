# SPDX-License-Identifier: BSD-3-Clause
"""What `make setup` installs is for all users of the machine, whatever the umask of the one who runs it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from ci import packages

SETUP = Path(__file__).parents[1] / "setup"
CHECK = """
source <(sed -n '/^sudo_ready=/,/^}/p' "$0")
umask 077
as_root sh -c 'umask; echo "$@"' sh 'two words' one
umask
"""


@pytest.mark.parametrize("user", ["root", "a user with sudo"])
def test_root_installs_with_an_open_umask(user: str) -> None:
    argv = ["bash", "-c", CHECK, "/dev/stdin"]  # which any user may read, wherever the checkout lies
    if user == "root" and os.geteuid() != 0:
        pytest.skip("this is run by a user")
    if user != "root" and os.geteuid() == 0:
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *argv]
    with tempfile.TemporaryDirectory() as name, SETUP.open() as stdin:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "sudo").write_text('#!/bin/sh\n[ "$1" != -n ] || exit 0\nexec "$@"\n')
        (folder / "sudo").chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        done = subprocess.run(argv, stdin=stdin, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "0022\ntwo words one\n0077\n"


@pytest.mark.parametrize(("words", "profile"), [([], "none"), (["PROFILE=asan"], "asan")])
def test_make_hands_on_a_profile_only_where_one_was_named(words: list[str], profile: str) -> None:
    """Exported and empty, PROFILE stopped the build of every fresh machine."""
    plain = {name: value for name, value in os.environ.items() if name not in {"PROFILE", "MAKEFLAGS"}}
    plain["MAKELEVEL"] = "1"  # `show` is none of the targets that people may name
    show = 'show: ; @printf "%s" "$${PROFILE-none}"'
    argv = ["make", "--no-print-directory", "--eval", show, "show", *words]
    done = subprocess.run(argv, cwd=SETUP.parents[1], env=plain, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == profile


def test_setup_says_what_it_installs_in_lines_that_a_terminal_shows() -> None:
    words = [f"libpackage{number}-dev" for number in range(60)] + ["x" * 120, "(12.0 MB to download)"]
    code = 'source <(sed -n "/^say() {/,/^}/p" "$0"); say "$@"'
    done = subprocess.run(["bash", "-c", code, SETUP, *words], capture_output=True, text=True, check=True, timeout=30)
    lines = done.stderr.splitlines()
    assert [line for line in lines if len(line) > 100 and "x" * 120 not in line] == []
    assert " ".join(" ".join(lines).split()[1:]) == " ".join(words)


def test_a_command_that_setup_says_can_be_pasted() -> None:
    words = [f"libpackage{number}-dev" for number in range(30)]
    code = 'source <(sed -n "/^say() {/,/^}/p" "$0"); say "As root: apt install $*"'
    done = subprocess.run(["bash", "-c", code, SETUP, *words], capture_output=True, text=True, check=True, timeout=30)
    assert max(map(len, done.stderr.splitlines())) <= 100
    pasted = 'apt() { echo "$@"; }\n' + done.stderr.partition("As root: ")[2]
    ran = subprocess.run(["bash", "-c", pasted], capture_output=True, text=True, check=True, timeout=30)
    assert ran.stdout.split() == ["install", *words]


def test_packages_are_read_as_yaml_reads_them() -> None:
    """Which packages are missing is said before there is a YAML parser."""
    groups = yaml.safe_load(packages.GROUPS.read_text())["cadge_setup_groups"]
    for purpose, names in groups.items():
        expected = set(names)
        for path in (packages.ROOT / "layers").glob("*/*.layer.yml"):
            of_layer = yaml.safe_load(path.read_text()).get("packages") or {}
            expected.update(of_layer.get("build") or [], of_layer.get("run") or [])
        assert packages.wanted([purpose]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "packages: {build: [a-dev, b], run: [c | d]}\n",
        "packages: # of Debian\n  build: [a-dev, 'b']\n  run:\n    - c | d # the first\n",
        'packages:\n  build:\n  - a-dev\n\n  # two\n  - "b"\n  run: [c | d]',
    ],
)
def test_lists_of_packages_in_any_style(text: str) -> None:
    for after in ("", "notes: x: y\n"):
        document = f"schema: a\n{text}\n{after}"
        assert packages.groups_in(packages.section(document, "packages")) == {"build": {"a-dev", "b"}, "run": {"c | d"}}
    assert packages.section(text, "limits") == ""


@pytest.mark.parametrize("allowed", ["yes", "no"])
@pytest.mark.parametrize("venv", [False, True])
def test_what_is_missing_is_said_once_and_in_one_sum(allowed: str, venv: bool, tmp_path: Path) -> None:
    """Python packages and Debian's in one list. Nothing is installed: the module venv fails, or .venv is empty."""
    checkout, programs = tmp_path / "checkout", tmp_path / "bin"
    programs.mkdir()
    for part in ("ci/setup", "ci/venv", "ci/packages.py", "ci/requirements.lock", "ci/requirements-dev.lock",
                 "pyproject.toml", "playbooks/roles/cadge_setup/defaults/main.yml"):  # fmt: skip
        (checkout / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(packages.ROOT / part, checkout / part)
    for name, does in {
        "dpkg-query": "echo 'installed gcc '",
        "apt-cache": "echo there",
        "apt-get": 'case $* in *--print-uris*) echo "u f 1500000 h"; echo "u f 2500000 h" ;; *) exit 1 ;; esac',
        "sudo": "exit 1",
        "python": f'case $* in "-m venv"*) exit 9 ;; esac; exec {sys.executable} "$@"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    setup = checkout / "ci/setup"
    setup.write_text(setup.read_text().replace("python=/usr/bin/python3", f"python={programs}/python"))
    if venv:
        (checkout / ".venv").mkdir()
        made = subprocess.run(
            [checkout / "ci/venv", "--stamp", programs / "python", "ci/requirements.lock"],
            capture_output=True, check=True, timeout=30,
        )  # fmt: skip
        (checkout / ".venv/cadge-stamp").write_bytes(made.stdout)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "SETUP": allowed, "TESTBED": ""}
    done = subprocess.run(
        ["bash", setup, "sweep"], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    text = " ".join(done.stderr.split())
    assert text.count("MB") == 1, text
    assert "(4.0 MB to download)" in text
    assert ("Python packages into .venv" in text) == (not venv)
    assert "libjansson-dev" in text
    said = [line for line in done.stderr.splitlines() if line.startswith(("setup:", "  "))]
    assert max(map(len, said)) <= 100
    assert done.returncode == 3 if allowed == "no" else 127 if venv else 9
