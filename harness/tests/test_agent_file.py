# SPDX-License-Identifier: BSD-3-Clause
"""The agent as one file: the same bytes from the same sources, run by a Python that has nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cadge_harness.run import agent_file


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = agent_file.agent_bytes()
    for path in agent_file.SOURCES.rglob("*.py"):
        os.utime(path)
    path = agent_file.write_agent(tmp_path)
    assert path.read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert "__main__.py" in names
        assert all(name.startswith(("__main__.py", "cadge_agent/")) for name in names)
    code = "import hashlib, cadge_harness.run.agent_file as a; print(hashlib.sha256(a.agent_bytes()).hexdigest())"
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        argv = [sys.executable, "-c", code]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == hashlib.sha256(first).hexdigest()


@pytest.mark.parametrize("magic", ["of this Python", "of another"])
def test_what_was_compiled_is_taken_by_the_same_python_alone(magic: str, tmp_path: Path) -> None:
    made = agent_file.write_agent(tmp_path)
    path = tmp_path / "other.pyz"
    with zipfile.ZipFile(made) as archive, zipfile.ZipFile(path, "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            if magic == "of another" and name.endswith(".pyc"):
                content = b"\0\0" + content[2:]
            other.writestr(name, content)
    code = f"import sys; sys.path.insert(0, {str(path)!r}); from cadge_agent.host import facts; print(facts.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{path}/cadge_agent/host/{'facts.pyc' if magic == 'of this Python' else 'facts.py'}\n"


def test_it_is_run_by_its_name_and_by_a_python_without_packages(tmp_path: Path) -> None:
    path = agent_file.write_agent(tmp_path)
    for argv in ([str(path)], [sys.executable, "-I", "-S", str(path)]):
        done = subprocess.run([*argv, "facts", "--host", "n1"], capture_output=True, text=True, check=True, timeout=60)
        node = json.loads(done.stdout)
        assert (node["schema"], node["host"]) == ("cadge.node/1", "n1")


def test_it_names_the_package_of_every_library(tmp_path: Path) -> None:
    """Whether the package says /lib or /usr/lib; a file of no package is told from them."""
    build = Path(os.environ.get("CADGE_BUILD") or Path(__file__).parents[2] / "build")
    if not (build / "layers").is_dir() or shutil.which("dpkg-query") is None:
        pytest.skip(f"{build} holds no layers, or this is no Debian")
    path = agent_file.write_agent(tmp_path)
    argv = [str(path), "facts", "--host", "n1", "--build", str(build)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    libraries = json.loads(done.stdout)["libraries"]
    assert libraries
    owned = {name: entry["version"] for name, entry in libraries.items() if not entry["file"].startswith("/usr/local")}
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${binary:Package} ${Version}\\n"], capture_output=True, text=True, check=True
    )
    installed = {line.split(" ")[0].split(":")[0]: line.split(" ")[1] for line in shown.stdout.splitlines()}
    for name, version in owned.items():
        package, _, number = version.partition(" ")
        assert installed[package.split(":")[0]] == number, name
