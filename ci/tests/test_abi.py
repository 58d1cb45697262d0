# SPDX-License-Identifier: BSD-3-Clause
"""ABI 1 holds: a layer and a caller of the day it was frozen run with what is built today; no change goes unseen."""

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "ci/abi-1"
BUILD = Path(os.environ.get("CADGE_BUILD", ROOT / "build"))
COMPILE = (os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{KEPT}/include")


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_abi", ROOT / "ci/check_abi.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


abi = load()
TODAY = abi.TODAY.read_text()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer of that day, built with the headers of that day alone."""
    module = tmp_path_factory.mktemp("abi") / "kept-packets.so"
    sources = sorted((KEPT / "kept").glob("*.c"))
    subprocess.run([*COMPILE, "-fPIC", "-fvisibility=hidden", "-shared", "-o", module, *sources], check=True)
    return module


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


@pytest.mark.paired
@pytest.mark.parametrize("wait", ["poll", "block"])
@pytest.mark.first(1)
def test_a_layer_of_that_day_conforms(kept: Path, wait: str) -> None:
    suite = BUILD / "bin/cadge-conformance"
    if not suite.exists():
        pytest.skip(f"{suite} is not built")
    # what sleeps is timed: layers/tests/test_conformance.py has that of today's adapters, alone
    sleeping = ("--skip", "wait_sleeps_and_wakes") if wait == "block" else ()
    said = run(suite, "--modules", BUILD / "layers", "--module", kept, "--wait", wait, "--cycles", 30, *sleeping)
    skipped = [line for line in said.splitlines() if "# SKIP" in line]
    assert len(skipped) < len(said.splitlines()) / 5, skipped


def test_a_caller_of_that_day_runs_the_layers_of_today(tmp_path: Path, kept: Path) -> None:
    # of two versions of a library a process can hold one: layers on providers are the same code over another
    modules = sorted(path for path in (BUILD / "layers").glob("*.so") if "@" not in path.name)
    if not modules:
        pytest.skip(f"no layer is built in {BUILD}")
    caller = tmp_path / "caller"
    run(*COMPILE, "-o", caller, KEPT / "caller.c", "-ldl")
    said = {line.split()[1].rstrip(":"): line for line in run(caller, *modules, kept).splitlines()}
    assert len(said) == len(modules) + 1
    assert said[str(BUILD / "layers/null-self.so")].endswith("taken, and talked to")


def test_what_was_frozen_stands() -> None:
    assert abi.main() == 0


CHANGES = {
    "a slot that moved": (
        "\tint (*flush)(struct cadge_chan *chan);\n",
        "",
        "struct cadge_layer: where `int ( * flush )",
    ),
    "a slot in the middle": (
        "\tint (*flush)(",
        "\tint (*later)(void);\n\tint (*flush)(",
        "there is `int ( * later )",
    ),
    "an argument": (
        "int (*quiet)(struct cadge_chan *chan, uint32_t flags,",
        "int (*quiet)(struct cadge_chan *chan, uint64_t flags,",
        "uint64_t flags",
    ),
    "a capability": ("CADGE_CAP_GET ", "CADGE_CAP_TOOK ", "CADGE_CAP_GET is gone"),
    "the bit of a capability": (
        "CADGE_CAP_NOTIFY (UINT64_C(1) << 24)",
        "CADGE_CAP_NOTIFY (UINT64_C(1) << 25)",
        "CADGE_CAP_NOTIFY was",
    ),
    "a code": ("CADGE_E_LOST = -4", "CADGE_E_LOST = -6", "enum cadge_code: where `CADGE_E_LOST = - 4`"),
    "a value in the middle": (
        "\tCADGE_FLOW_CREDITS,",
        "\tCADGE_FLOW_RATE,\n\tCADGE_FLOW_CREDITS,",
        "where `CADGE_FLOW_CREDITS",
    ),
    "a field in the middle": (
        "\tuint32_t peers_max; ",
        "\tuint32_t hosts_max;\n\tuint32_t peers_max; ",
        "struct cadge_open_args: where `uint32_t peers_max`",
    ),
    "a struct that cannot grow": (
        "\tuint64_t word[4];",
        "\tuint64_t word[4];\n\tuint64_t more;",
        "struct cadge_reply_to cannot grow",
    ),
    "room for later values": ("\tCADGE_FLOW_WIDE = INT32_MAX,\n", "", "CADGE_FLOW_WIDE"),
    "the entry": ("cadge_layer_entry(void);", "cadge_layer_entry(int abi);", "is gone"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(change: str) -> None:
    old, new, words = CHANGES[change]
    text = abi.FROZEN.read_text()
    assert old in text
    found = list(abi.differences(text, text.replace(old, new, 1)))
    assert any(words in line for line in found), found


def test_what_is_appended_is_no_change() -> None:
    text = TODAY
    for old, new in (
        ("\tconst char *(*why)(const struct cadge_ctx *ctx);", "\\g<0>\n\tint (*later)(struct cadge_ctx *ctx);"),
        ("\tCADGE_FLOW_WIDE = INT32_MAX,", "\tCADGE_FLOW_RATE,\n\\g<0>"),
        ("#define CADGE_CAPS_KNOWN .*", "#define CADGE_CAP_LATER (UINT64_C(1) << 29)\n#define CADGE_CAPS_KNOWN 2"),
        ("\tuint32_t threads_max;", "\\g<0>\n\tuint32_t later;"),
    ):
        pattern = old if old.startswith("#") else abi.re.escape(old)
        text, count = abi.re.subn(pattern, new, text)
        assert count == 1, old
    assert list(abi.differences(abi.FROZEN.read_text(), text)) == []
