# SPDX-License-Identifier: BSD-3-Clause
"""CONTRIBUTING on adding a layer: what it says to do works, from its own text."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cadge_harness.errors import UsageError
from cadge_harness.yamlfile import load_document
from cadge_results import LayerFile

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## To add a layer")[1].split("\n## ")[0]
TODO = {"title": "Foo, its active messages", "library": "UNIX sockets", "licence": "MIT", "notes": "None."}


def commands() -> list[str]:
    """Return the commands of the page's first block, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [line.split("  #")[0].strip() for line in blocks[0].splitlines() if line.strip()]


def fill_in(file: Path) -> None:
    """Write words in place of each TODO of a layer file."""
    text = file.read_text(encoding="utf-8")
    for key, words in TODO.items():
        text, count = re.subn(rf'^{key}: "TODO.*"$', f'{key}: "{words}"', text, flags=re.MULTILINE)
        assert count == 1, key
    file.write_text(text, encoding="utf-8")


def test_the_skeleton_is_short_and_no_layer() -> None:
    assert len((ROOT / "layers/skeleton/adapter.c").read_text(encoding="utf-8").splitlines()) <= 210
    assert not list((ROOT / "layers/skeleton").glob("*.layer.yml"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what the commands need; the suite is built already."""
    root = tmp_path_factory.mktemp("tree")
    listing = ["git", "ls-files", "-z", "--", "layers", "ci", "Makefile"]
    files = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout.split("\0")
    for name in filter(None, files):
        if (ROOT / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    for name in ("bin/cadge-conformance", "obj/conformance"):
        built, copy = ROOT / "build" / name, root / "build" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if built.is_dir():
            shutil.copytree(built, copy)
        elif built.exists():
            shutil.copy2(built, copy)
    return root


def test_the_page_has_these_commands() -> None:
    assert [command.split()[:2] for command in commands()] == [
        ["make", "new-layer"],
        ["make", "conformance"],
        ["make", "conformance"],
    ]
    assert "PROFILE=asan" in commands()[2]


def without_foo(tree: Path) -> None:
    """Remove the page's layer, which a former test made in the folder of its style."""
    for path in (tree / "layers/am").glob("foo*"):
        path.unlink()


def make(tree: Path, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one of the page's commands."""
    environment = {**os.environ, "CYCLES": "10", "MAKEFLAGS": f"-j{os.cpu_count()}", **variables}
    environment.pop("MAKELEVEL", None)  # a user's make is nobody's child, and does not say where it is
    return subprocess.run(
        command.split(), cwd=tree, capture_output=True, text=True, timeout=500, env=environment, check=False
    )


@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chosen", [slice(0, 2), pytest.param(slice(0, 3), marks=pytest.mark.long)])
def test_the_commands_of_the_page_do_what_it_says(tree: Path, chosen: slice) -> None:
    without_foo(tree)
    for command in commands()[chosen]:
        done = make(tree, command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        if "new-layer" in command:
            fill_in(tree / "layers/am/foo.layer.yml")
        else:
            assert "conforms     within, poll" in done.stdout, done.stdout
            assert "conforms     within, block" in done.stdout, done.stdout
    written = {path.name for path in (tree / "layers/am").glob("foo*")}
    assert written == {"foo.c", "foo.mk", "foo.layer.yml"}


@pytest.mark.timeout(600)
def test_conformance_refuses_what_is_still_to_do_and_a_test_that_is_not_there(tree: Path) -> None:
    """A misspelt test must not read as a layer that conforms."""
    without_foo(tree)
    assert make(tree, commands()[0]).returncode == 0
    done = make(tree, commands()[1], ONLY="layer_file_true")
    assert done.returncode == 2
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 2
    for line in failed:
        assert "layer_file_true: layers/am/foo.layer.yml still says TODO at: title, library, licence, notes" in line
    layer = tree / "layers/am/foo.layer.yml"
    fill_in(layer)
    layer.write_text(layer.read_text(encoding="utf-8").replace("min_bytes: 65537", "min_bytes: 4097"), encoding="utf-8")
    done = make(tree, commands()[1], ONLY="layer_file_true")
    assert done.returncode == 2
    assert re.search(r"FAILED .*layer_file_true: message_bytes_max: .* 4097 .* 65536", done.stdout), done.stdout
    done = make(tree, commands()[1], ONLY="no_such_test")
    assert done.returncode == 2
    assert "no test is called 'no_such_test'" in done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"FAILED"}


def test_conformance_refuses_a_layer_file_as_the_harness_does(tree: Path) -> None:
    """Where known faults are no list, say; awk would read on and find none."""
    without_foo(tree)
    assert make(tree, commands()[0]).returncode == 0
    layer = tree / "layers/am/foo.layer.yml"
    fill_in(layer)
    with layer.open("a", encoding="utf-8") as file:
        file.write("known_faults: {test: peer_dies, place: within, reason: it hangs}\n")
    name = str(layer.relative_to(tree))
    with pytest.raises(UsageError) as refused:
        load_document(layer.read_text(encoding="utf-8"), LayerFile, source=name)
    done = make(tree, commands()[1], TABLES_PYTHON=sys.executable)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == f"conformance: {refused.value}"
    assert f"{name}:" in done.stderr.splitlines()[0]


def test_slots_have_no_names_of_the_library(tree: Path) -> None:
    """A layer called after its library, whose functions have its name: here mq_open, mq_close."""
    environment = {**os.environ, "NAME": "posix-mq", "LAYERS": "posix-mq"}
    subprocess.run(["make", "-s", "new-layer"], cwd=tree, env=environment, timeout=30, check=True)
    adapter = tree / "layers/posix/mq.c"
    try:
        adapter.write_text("#include <mqueue.h>\n" + adapter.read_text())
        built = ["make", "-s", "-f", "layers/build.mk", "LAYERS=posix-mq"]
        done = subprocess.run(built, cwd=tree, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert (tree / "build/layers/posix-mq.so").exists()
    finally:
        shutil.rmtree(adapter.parent)


def test_what_is_no_name_is_refused(tree: Path) -> None:
    for name in ("", "foo", "Am-foo", "am-foo-bar", "am/../x-y", "am-foo; touch x", "null-self"):
        done = subprocess.run(
            ["make", "-s", "new-layer"],
            cwd=tree,
            env={**os.environ, "NAME": name},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 2, name
        assert "new-layer: " in done.stderr, name
    assert not (tree / "x").exists()
    assert not list((tree / "layers").glob("*/y.*"))
