# SPDX-License-Identifier: BSD-3-Clause
"""YAML that would take a machine's memory or its afternoon is refused before that, with its place and the limit.

The commands run as programs of their own, with limits, so that a fault costs this test and nobody else.
"""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_cli.commands import run as commands_run
from cadge_harness import yamlfile
from cadge_harness.errors import UsageError
from cadge_harness.paths import Checkout
from cadge_harness.testbed.inventory_file import load as read_inventory
from cadge_harness.yamlfile import load

from .conftest import TINY, Answer, FakeRunner

Cadge = Callable[..., Answer]
MEMORY_BYTES = 4 * 2**30
TIMEOUT_S = 60
"""Far more than a refusal takes: less than a second of processor time."""

BOMB = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12))
CHAIN = "".join(f"x{n}: &x{n} [*x{n - 1}]\n" for n in range(1, 3000))
HOSTILE = {
    "alias bomb": (f"x0: &x0 [8B]\n{BOMB}{TINY}", "s.yml:5:35: more than 10000 values, where each alias counts as"),
    "chain of aliases": (f"x0: &x0 [8B]\n{CHAIN}{TINY}", "s.yml:32:12: nested more than 32 deep"),
    "lists": (TINY + "layers: " + "[" * 20_000, "s.yml:10:40: nested more than 32 deep"),
    "closed lists": (TINY + "layers: " + "[" * 20_000 + "]" * 20_000, "s.yml:10:40: nested more than 32 deep"),
    "mappings": (TINY + "layers: " + "{a: " * 20_000, "s.yml:10:133: nested more than 32 deep"),
    "dashes": (TINY + "layers:\n" + "- " * 20_000, "s.yml:11:63: nested more than 32 deep"),
    "digits": (TINY.replace("seed: 7", "seed: " + "7" * 5000), "s.yml:8:7: a number of 5000 digits; at most 20"),
    "fewer digits": (TINY.replace("seed: 7", "seed: -" + "7" * 4000), "s.yml:8:7: a number of 4000 digits; at most 20"),
    "digits of a unit": (TINY.replace("20ms", "2" * 5000 + "ms"), "s.yml:9:21: duration.default: a number of 5000"),
    "digits of a size": (
        TINY.replace("request_bytes: sizes", f"request_bytes: {'8' * 4000}B"),
        "s.yml:6:35: patterns.0.request_bytes: a number of 4000 digits; at most 20",
    ),
    "a long word": (TINY.replace("pattern: rpc", "pattern: " + "r" * 100_000), "s.yml:6:15: patterns.0.pattern: "),
    "launches": (
        TINY.replace("launches: 3", "launches: 1000000"),
        "s.yml:7:11: launches: must be a whole number from 1 to 1000, not 1000000",
    ),
    "sizes": (TINY.replace("4KiB", ", ".join(["8B"] * 20_000)), "s.yml:4:39975: more than 10000 values"),
    "bytes": (TINY + "#" * 300_000, "s.yml: larger than 262144 bytes, which is the limit"),
    "combinations": (
        TINY.replace("[8B, 4KiB]", str([f"{n}B" for n in range(1, 1001)])).replace(
            "request_bytes: sizes", f"request_bytes: sizes, reply_bytes: sizes, depth: {list(range(1, 1001))}"
        ),
        "s.yml:6:5: patterns.0: makes 2000000000 of the sweep's combinations of values, places and wait modes; "
        "there may be 10000",
    ),
    "attempts": (
        TINY.replace("[8B, 4KiB]", str([f"{n}B" for n in range(1, 1001)])).replace("launches: 3", "launches: 1000"),
        "this sweep makes 4000000 attempts (2 layers, 2000 combinations, 1000 launches); at most 1000000",
    ),
}  # fmt: skip


def limited() -> None:
    """Let a program that goes astray end by itself."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_S, TIMEOUT_S))


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.first(4)
def test_a_hostile_sweep_is_refused(what: str, checkout: Checkout, tmp_path: Path) -> None:
    assert checkout
    text, said = HOSTILE[what]
    (tmp_path / "s.yml").write_text(text)
    argv = [sys.executable, "-m", "cadge_cli.cli", "plan", "--sweep", "./s.yml", "--layers", "a-one b-two"]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=2 * TIMEOUT_S, preexec_fn=limited
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr[-2000:]
    assert f"cadge: {said}" in done.stderr
    assert len(done.stderr) < 1000


def test_what_is_within_the_limits_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"a: &a {'[' * 15}{'7' * 20}{']' * 15}\nb: {'[' * 16}*a{']' * 16}\nc: {[0] * 9900}\n"
    raw, _ = load(text, source="x")
    assert isinstance(raw, dict)
    assert raw["c"] == [0] * 9900
    # Where PyYAML was built without libyaml, its own loader keeps the same limits.
    monkeypatch.setattr(yamlfile, "_QuickLoader", yamlfile._Loader)
    assert load(text, source="x")[0] == raw
    for wrong in ("[" * 20_000, "- " * 20_000):
        with pytest.raises(UsageError, match="nested more than 32 deep"):
            load(wrong, source="x")


def test_a_sweep_without_an_end(checkout: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    """A sparse file of a terabyte is read no further than the limit."""
    assert checkout
    with (tmp_path / "s.yml").open("wb") as stream:
        stream.truncate(2**40)
    answer = cadge("plan", "--sweep", str(tmp_path / "s.yml"))
    assert (answer.code, answer.out) == (2, "")
    assert "s.yml: larger than 262144 bytes, which is the limit" in answer.err


@pytest.mark.parametrize(
    "place",
    ["hosts.yml", "hosts", "hosts.json", "group_vars/cadge.yml", "group_vars/all/x.yaml", "host_vars/n1",
     "host_vars/n1.json", "all/01-hosts.yml", "all/group_vars/cadge"],
)  # fmt: skip
@pytest.mark.parametrize("text", ["all: " + "[" * 20_000, f"x0: &x0 [a]\n{BOMB}"])
def test_a_hostile_inventory_is_refused(text: str, place: str, tmp_path: Path) -> None:
    """Also where Ansible finds it by itself, in files beside the inventory or in a folder of inventories."""
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("cadge: {hosts: {n1: {cadge_device: ib0, cadge_address: 10.1.0.1}}}\n")
    hostile = tmp_path / place
    hostile.parent.mkdir(parents=True, exist_ok=True)
    hostile.write_text(text)
    first = place.partition("/")[0]
    given = tmp_path / first if first in {"hosts", "hosts.json", "all"} else hosts
    with pytest.raises(UsageError, match=rf"{place}:\d+:\d+: (nested more than 100 deep|more than 1000000 values)"):
        read_inventory(given)


def test_an_inventory_and_what_lies_beside_it_have_one_limit(tmp_path: Path) -> None:
    """A sparse file each, under the limit by itself."""
    (tmp_path / "hosts.yml").write_text("cadge: {hosts: {n1: {cadge_device: ib0, cadge_address: 10.1.0.1}}}\n")
    for name in ("group_vars", "host_vars"):
        (tmp_path / name).mkdir()
        with (tmp_path / name / "all").open("wb") as stream:
            stream.truncate(40 * 2**20)
    with pytest.raises(UsageError, match=r"host_vars/all, with what lies beside it,: larger than 67108864 bytes"):
        read_inventory(tmp_path / "hosts.yml")


def test_a_folder_beside_an_inventory_that_leads_to_itself(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("cadge: {hosts: {n1: {cadge_device: ib0, cadge_address: 10.1.0.1}}}\n")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/again").symlink_to(tmp_path / "group_vars")
    (tmp_path / "group_vars/notes.txt").write_text("[" * 20_000)  # which Ansible does not read
    assert read_inventory(tmp_path / "hosts.yml").hosts[0].device == "ib0"
    (tmp_path / "group_vars/and-again").symlink_to(tmp_path / "group_vars")  # 2^40 folders
    with pytest.raises(UsageError, match=r"hosts.yml: beside it lie more than 10000 files in folders that Ansible"):
        read_inventory(tmp_path / "hosts.yml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("launches: 3", "launches: 3\nlayers: []", "s.yml:8:9: layers: names no layer; leave the key out for"),
        ("launches: 3", "launches: 3\nlayers: [all, null-self]", "s.yml:8:9: layers: 'all' is written without"),
        ("launches: 3", "launches: 3\nplaces: []", "s.yml:8:9: places: "),
        ("launches: 3", "launches: 3\nwaits: []", "s.yml:8:8: waits: "),
        ("request_bytes: sizes", "request_bytes: sizes, places: []", "s.yml:6:50: patterns.0.places: "),
    ],
)  # fmt: skip
def test_nothing_is_not_everything(
    old: str, new: str, said: str, checkout: Checkout, cadge: Cadge, tmp_path: Path
) -> None:
    assert checkout
    (tmp_path / "s.yml").write_text(TINY.replace(old, new))
    answer = cadge("plan", "--sweep", str(tmp_path / "s.yml"))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_takes_a_sweep_whose_name_has_a_space(tmp_path: Path) -> None:
    program = tmp_path / "cadge"
    program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    name = "my $HOME 'sweep'.yml"
    make = ["make", "-s", "-C", str(Path(__file__).parents[2]), "-o", "build", f"cadge={program}"]
    environment = {key: value for key, value in os.environ.items() if key not in {"SWEEP", "RUN", "MAKEFLAGS"}}
    for words, said in (
        (["sweep", "SWEEP=" + name.replace("$", "$$")], f"<run><--sweep><{name}>"),
        (["sweep"], "<run><--sweep><default>"),
        (["report", "RUN=a campaign"], "<report><a campaign>"),
        (["report"], "<report>"),
    ):
        done = subprocess.run([*make, *words], capture_output=True, text=True, check=False, env=environment, timeout=60)
        assert (done.returncode, done.stdout) == (0, said), done.stderr


def test_a_sweep_whose_name_has_a_space_is_run(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    real = commands_run.machine_lock
    monkeypatch.setattr(
        commands_run,
        "machine_lock",
        lambda command, *rest, **more: shown.append(command) or real(command, *rest, **more),
    )
    assert checkout
    path = tmp_path / "my sweep.yml"
    path.write_text(TINY)
    assert cadge("run", "--sweep", str(path), "--no-report").code == 0
    assert runner.made
    assert shown == [f"cadge run --sweep '{path}' --no-report --no-queue"]  # to be pasted into a shell
    assert cadge("status").code == 0
