# SPDX-License-Identifier: BSD-3-Clause
"""Each fault of driver/tests/mutants.toml, built into a copy of the driver, fails the unit test that it names."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from . import test_threads

ROOT = Path(__file__).resolve().parents[2]
FAULTS = tomllib.loads((ROOT / "harness/driver/tests/mutants.toml").read_text(encoding="utf-8"))["mutant"]
COPIED = ("harness", "layers/include", "layers/kit", "layers/peregrine/engine", "results/src", "pyproject.toml")
BUILT = ("build/obj/harness", "build/libcadge-harness.a")
HUNG_S = 60


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the driver with what was built of it, as old as it is, so that only what a fault touches is built anew."""
    if not (ROOT / BUILT[0] / "flags").exists():
        pytest.skip("the driver is not built: make build")
    folder = tmp_path_factory.mktemp("mutants")
    listed = subprocess.run(
        ["git", "ls-files", "-zco", "--exclude-standard", *COPIED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    for name in BUILT:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", ROOT / name, folder / name], check=True)
    return folder


def build(folder: Path, program: str) -> None:
    """Build a unit test in the copy, with the compiler that built what was copied."""
    compiler = (folder / "build/obj/harness/flags").read_text(encoding="utf-8").split()[0]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", "-f", "harness/build.mk", f"CC={compiler}", "REVISION=mutant"]
    done = subprocess.run(
        [*command, f"build/tests/{program}"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def passes(program: Path) -> bool:
    """Run a unit test; who sleeps for ever does not pass."""
    try:
        return subprocess.run([program], capture_output=True, timeout=HUNG_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def changed(harness: Path, fault: dict[str, str]) -> tuple[Path, str, str]:
    """Return the file of a fault, its text, and its text with the fault."""
    source = harness / "driver" / fault["file"]
    sound = source.read_text(encoding="utf-8")
    was, becomes = (fault[key].removeprefix("\n") for key in ("was", "becomes"))
    assert sound.count(was) == 1, f"{fault['file']} holds {sound.count(was)} times: {was}"
    return source, sound, sound.replace(was, becomes)


def test_each_fault_changes_one_place_and_has_a_test() -> None:
    for fault in FAULTS:
        source, sound, faulty = changed(ROOT / "harness", fault)
        assert faulty != sound, source
        assert (ROOT / "harness/driver/tests" / f"{fault['caught_by'].removeprefix('driver-')}.c").is_file(), fault


@pytest.mark.first(1)
@pytest.mark.paired
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["name"].replace(" ", "-"))
def test_a_fault_is_caught(copy: Path, fault: dict[str, str]) -> None:
    source, sound, faulty = changed(copy / "harness", fault)
    program = copy / "build/tests" / fault["caught_by"]
    source.write_text(faulty, encoding="utf-8")
    try:
        if "under" in fault:
            test = copy / "harness/driver/tests" / f"{program.name.removeprefix('driver-')}.c"
            program.parent.mkdir(parents=True, exist_ok=True)
            test_threads.build(program, [test], copy / "harness")
        else:
            build(copy, program.name)
    finally:
        source.write_text(sound, encoding="utf-8")
    assert not passes(program), f"{program.name} passes"
