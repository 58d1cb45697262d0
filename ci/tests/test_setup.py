# SPDX-License-Identifier: BSD-3-Clause
"""What `make setup` installs is for all users of the machine, whatever the umask of the one who runs it."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

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
