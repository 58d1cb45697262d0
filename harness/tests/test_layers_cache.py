# SPDX-License-Identifier: BSD-3-Clause
"""`cadge layers` asks a module once, and again when it, or what it depends on, is another."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.environment import base_environment  # type: ignore[import-not-found, unused-ignore]
from cadge_harness.paths import Checkout

from .conftest import TINY, Answer

Cadge = Callable[..., Answer]


@dataclass(frozen=True, slots=True)
class Asked:
    """A checkout whose driver notes whom it is asked for."""

    checkout: Checkout
    log: Path
    cache: Path

    def answer(self, **said: object) -> None:
        """Build a driver that says this of every layer."""
        document = {
            "schema": "cadge.describe/1",
            "table": {"library": {"name": "Lib", "stated_version": "1.0"}},
            **said,
        }
        text = f"#!/bin/sh\necho $5 >>{self.log}\ncat <<'END'\n{json.dumps(document)}\nEND\n"
        self.checkout.driver.write_text(text)

    def names(self) -> list[str]:
        """Return whom it was asked for since the last time."""
        found = sorted(self.log.read_text().split()) if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return found

    def file(self) -> Path:
        """Return the one file in the cache."""
        (found,) = (self.cache / "cadge").iterdir()
        return found


@pytest.fixture
def asked(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Asked(checkout, tmp_path / "asked", tmp_path / "cache")
    made.answer()
    return made


def test_a_module_is_asked_once(asked: Asked, cadge: Cadge) -> None:
    first = cadge("layers", "--json")
    assert first.code == 0
    assert asked.names() == ["a-one", "b-two"]
    assert cadge("layers", "--json") == first
    assert asked.names() == []
    assert '"version": "1.0"' in first.out


def test_what_changed_is_asked_again(asked: Asked, cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cadge("layers").code == 0
    asked.names()
    (asked.checkout.modules / "a-one.so").write_text("another")
    assert cadge("layers").code == 0
    assert asked.names() == ["a-one"]
    os.utime(asked.checkout.modules / "b-two.so", ns=(1, 1))
    assert cadge("layers").code == 0
    assert asked.names() == ["b-two"]
    monkeypatch.setenv("ONE_TLS", "shm")  # as libraries are told what to use: a module is not given it
    assert cadge("layers").code == 0
    assert asked.names() == []
    monkeypatch.setenv("PATH", "/opt/one/bin", prepend=":")  # nor where the user looks for programs
    assert cadge("layers").code == 0
    assert asked.names() == []
    asked.answer(more="")
    assert cadge("layers").code == 0
    assert asked.names() == ["a-one", "b-two"]
    assert cadge("layers").code == 0
    assert asked.names() == []


def test_a_module_is_asked_in_the_surroundings_of_a_launch(
    asked: Asked, cadge: Cadge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's variables and files steer libraries, in launches no longer: what a module says must hold for those."""
    seen = tmp_path / "seen"
    seen.mkdir()
    look = '{ echo "$(pwd)" $(ls -A) $(ls -A "$HOME"); env; }'
    asked.checkout.driver.write_text(f"#!/bin/sh\n{look} >{seen}/$1.$5\nexit 2\n")
    for name, value in {"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/somewhere", "OMPI_MCA_btl": "tcp"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    cadge("doctor")
    expected = base_environment("").items()
    assert sorted(path.name for path in seen.iterdir()) == ["describe.a-one", "describe.b-two", "patterns.", "version."]
    for path in seen.iterdir():
        first, *lines = path.read_text().splitlines()
        found = dict(line.split("=", 1) for line in lines)
        assert first == found["HOME"], "nothing is in either folder"
        assert not Path(found["HOME"]).exists()
        assert set(found) - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "LC_ALL", "HOME", "TMPDIR"}
        assert found.items() >= expected


def test_a_plan_for_a_cluster_asks_with_what_the_inventory_states(
    asked: Asked, cadge: Cadge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library in a place of its own would be missing, and its layers planned as if nothing were known of them."""
    seen = tmp_path / "seen"
    patterns = asked.checkout.driver.read_text()
    asked.checkout.driver.write_text(f"#!/bin/sh\n[ $1 != describe ] || {{ echo $5; env; }} >>{seen}\nexit 2\n")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    inventory, sweep = tmp_path / "hosts.yml", tmp_path / "some.yml"
    sweep.write_text(TINY + "waits: [block]\nlayers: [a-one]\n")
    stated = {"LD_LIBRARY_PATH": "/opt/ucx/lib", "OPAL_PREFIX": "/opt/openmpi"}
    example = cadge("testbed", "example").out
    inventory.write_text(example)
    assert cadge("plan", "--sweep", str(sweep), "--inventory", str(inventory), "--no-look").code == 0
    assert not [line for line in seen.read_text().splitlines() if line.startswith(tuple(stated))]
    seen.unlink()
    inventory.write_text(re.sub(r"# (cadge_(ld_library_path|opal_prefix): )", r"\1", example))
    assert cadge("plan", "--sweep", str(sweep), "--inventory", str(inventory), "--no-look").code == 0
    said = seen.read_text().splitlines()
    assert said[0] == "a-one"
    assert {f"{name}={value}" for name, value in stated.items()} <= set(said)
    asked.checkout.driver.write_text(patterns)
    asked.names()
    assert cadge("layers").code == 0
    assert asked.names() == ["a-one", "b-two"], "what is found there is not what is found here"


def test_what_cannot_be_loaded_is_asked_each_time(asked: Asked, cadge: Cadge) -> None:
    asked.answer(reason="libone.so.1: cannot open shared object file")
    for _ in range(2):
        assert cadge("layers").code == 0
        assert asked.names() == ["a-one", "b-two"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "cadge.said/1", "said": {" ": {}, "a": 1}}', "[" * 10**5])
def test_a_damaged_cache_is_no_cache(text: str, asked: Asked, cadge: Cadge) -> None:
    first = cadge("layers")
    asked.names()
    asked.file().write_text(text)
    assert cadge("layers") == first
    assert asked.names() == ["a-one", "b-two"]
    assert cadge("layers") == first
    assert asked.names() == []


def test_a_cache_that_cannot_be_written_is_done_without(
    asked: Asked, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.cache.write_text("a file where the folder would be")
    for _ in range(2):
        assert cadge("layers").code == 0
        assert asked.names() == ["a-one", "b-two"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "")
    assert cadge("layers").code == 0
    assert asked.names() == ["a-one", "b-two"]


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away takes root")
def test_nothing_is_left_in_another_user_s_home(asked: Asked, cadge: Cadge) -> None:
    """As root with the home of somebody else (sudo -E), who could not write there afterwards."""
    asked.cache.mkdir()
    os.chown(asked.cache, 65534, 65534)
    assert cadge("layers").code == 0
    assert list(asked.cache.iterdir()) == []


def test_the_cache_has_the_user_s_umask(asked: Asked) -> None:
    code = "import os, sys; os.umask(int(sys.argv[1], 8)); from cadge_cli import cli; sys.exit(cli.invoke(['layers']))"
    for umask, mode in (("077", 0o600), ("022", 0o644)):
        subprocess.run([sys.executable, "-c", code, umask], check=True, stdout=subprocess.DEVNULL, timeout=60)
        assert asked.file().stat().st_mode & 0o777 == mode
        asked.file().unlink()


def test_listing_layers_imports_no_planner() -> None:
    code = (
        "import sys; import cadge_cli.commands.layers\n"
        "heavy = {'cadge_harness.plan.planner', 'cadge_harness.run.request', 'concurrent.futures', 'rich', 'ansible'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_model_is_built_when_it_is_used() -> None:
    """Building all of them takes a third of what `cadge layers` takes."""
    code = (
        "import cadge_results as r\n"
        "built = [m.__name__ for m in (r.Plan, r.LaunchRecord, r.Block, r.SweepFile) if m.__pydantic_complete__]\n"
        "raise SystemExit(', '.join(built) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
