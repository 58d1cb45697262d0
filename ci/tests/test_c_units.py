# SPDX-License-Identifier: BSD-3-Clause
"""Run every C unit test program with sanitizers, and in `make long` without; status 77 is a skip, with its reason.

In the short form, what is tried with chance is tried less often.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(
    path
    for tree in (ROOT / "build/tests", ROOT / "build/asan/tests")
    for pattern in ("unit-*", "driver-*test_*")
    for path in tree.glob(pattern)
    if os.access(path, os.X_OK) and path.is_file() and not path.suffix
)
SANITIZED = ROOT / "build/asan/tests"
TIMED = {"driver-test_attempt"}
"""Whose attempts last milliseconds, in which code with sanitizers may get nothing done."""
TWO_AT_ONCE = {"driver-test_attempt", "driver-test_machine_probe"}
"""Whose two threads or processes have to run at the same time: beside nothing else, on a machine of two processors."""
SECOND_LOOK = {"unit-peregrine-wires", "new_layer.sh"}
"""What the conformance suite, and the test of CONTRIBUTING's commands, also hold: `make long` alone has them."""
NEEDS_A_DEVICE = {"verbs"}
"""Wires whose programs skip here: ci/rdma/run runs them on an emulated machine."""
SHORT = {"CADGE_TEST_SHARE": "4", "PGR_CALLS": "6000", "PGR_KILLS": "30"}
"""What the programs take for less than their full number of rounds."""
SCRIPTS = sorted((ROOT / "layers/tests/unit").glob("*.sh"))


@pytest.fixture(scope="session")
def suppressions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All leaks of libraries that the layers know of, in one file."""
    path = tmp_path_factory.mktemp("lsan") / "leaks.supp"
    path.write_text("".join(known.read_text() for known in sorted((ROOT / "layers").rglob("*.supp"))))
    return path


def over_another_wire(name: str) -> bool:
    """Say whether a program tests a style that another tests too, over the wire whose name comes last."""
    tested, _, wire = name.removeprefix("unit-").rpartition("_")
    if not list(ROOT.glob(f"layers/tests/*/{tested}.wires.mk")) or not (ROOT / f"layers/wire/{wire}/wire.mk").exists():
        return False
    same = {path.name.rpartition("_")[2] for path in SANITIZED.glob(f"unit-{tested}_*") if not path.suffix}
    return wire != max(same - NEEDS_A_DEVICE, default=wire)


def cases() -> list[object]:
    """Return what is run; what measures for a moment as the driver does has a processor of its own for it.

    A program that there is with sanitizers too is left to `make long` without them, and so is a style over its other
    wires, each of which has a program of its own, and what is a second look.
    """
    return [
        pytest.param(
            path,
            id=str(path.relative_to(ROOT)),
            marks=[pytest.mark.alone if path.name in TWO_AT_ONCE else pytest.mark.paired]
            * path.name.startswith("driver-")
            + [pytest.mark.long]
            * (
                (path.parent != SANITIZED and (SANITIZED / path.name).exists() and path.name not in TIMED)
                or over_another_wire(path.name)
                or path.name in SECOND_LOOK
            ),
        )
        for path in [*PROGRAMS, *SCRIPTS]
        if path.name not in TIMED or path.parent != SANITIZED
    ]


@pytest.mark.parametrize("program", cases())
def test_unit(program: Path, suppressions: Path) -> None:
    """TAP on stdout; 0 passed, 77 skipped with the last line as reason, anything else failed."""
    environment = {
        **({} if os.environ.get("CADGE_TEST_SCOPE") else SHORT),
        **os.environ,
        "CADGE_MODULES": str(program.parent.parent / "layers"),
        "CADGE_LAYERS_ROOT": str(ROOT / "layers"),
        "ASAN_OPTIONS": "intercept_tls_get_addr=0",  # why: layers/tests/test_conformance.py, run()
        "LSAN_OPTIONS": "suppressions=" + str(suppressions),
    }
    done = subprocess.run(
        [program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    if done.returncode == 77:
        pytest.skip(((done.stdout + done.stderr).strip().splitlines() or ["no reason given"])[-1])
    failed = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
    assert done.returncode == 0, "\n".join(
        [f"{program.name} ended with {done.returncode}", *failed, "-- all that it said:", done.stdout, done.stderr]
    )


def test_there_are_unit_tests() -> None:
    """An empty build tree must not pass for a tested one."""
    assert PROGRAMS, "no C unit test programs in build/tests: run make test"
