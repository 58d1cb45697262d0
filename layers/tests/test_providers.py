# SPDX-License-Identifier: BSD-3-Clause
"""Layers on providers: the system's own UCX, declared as one, makes a second native-ucx beside the first."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "build/bin/cadge-driver"
LAYER = "native-ucx"


def pkg_config(*words: str) -> str:
    return subprocess.run(["pkg-config", *words, "ucx"], capture_output=True, text=True, check=True).stdout.strip()


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = (f"BUILD={folder / 'build'}", f"PROVIDERS={folder / 'providers'}")
    command = ["make", "--no-print-directory", "-s", "-j2", "-f", "layers/build.mk", *given, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def built(folder: Path) -> dict[str, int]:
    """Return the files of layers with the time at which each was last made."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "build/layers").iterdir()}


@pytest.fixture(scope="module")
def version() -> str:
    if shutil.which("pkg-config") is None or subprocess.run(["pkg-config", "--exists", "ucx"], check=False).returncode:
        pytest.skip("UCX is not installed")
    return pkg_config("--modversion")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, version: str) -> Path:
    """Return where one provider lies and one layer on it was built."""
    folder = tmp_path_factory.mktemp("providers")
    provider = folder / f"providers/ucx-{version}"
    provider.mkdir(parents=True)
    (provider / "provider.mk").write_text(
        f"PROVIDER_LIBRARY := ucx\nPROVIDER_VERSION := {version}\nPROVIDER_PKGS := ucx\n"
        f"PROVIDER_CFLAGS := {pkg_config('--cflags')}\nPROVIDER_LIBS := {pkg_config('--libs')}\nPROVIDER_RPATH := lib\n"
    )
    made = make(folder, f"LAYERS={LAYER}@{version}")
    assert made.returncode == 0, made.stderr
    return folder


def test_a_layer_is_built_on_its_provider_alone(folder: Path, version: str) -> None:
    assert set(built(folder)) == {f"{LAYER}@{version}.so", f"{LAYER}@{version}.provider"}
    assert (folder / f"build/layers/{LAYER}@{version}.provider").read_text() == f"ucx-{version}\n"


def test_what_it_needs_is_found_at_the_provider_first(folder: Path, version: str) -> None:
    """The run path is relative to the layers, and of the kind that the loader takes before all others."""
    module = folder / f"build/layers/{LAYER}@{version}.so"
    said = subprocess.run(["readelf", "-d", module], capture_output=True, text=True, check=True).stdout
    assert f"(RPATH)              Library rpath: [$ORIGIN/../../providers/ucx-{version}/lib]" in said
    assert "RUNPATH" not in said


def test_the_driver_loads_it_under_its_label(folder: Path, version: str) -> None:
    if not DRIVER.exists():
        pytest.skip(f"{DRIVER} is not built")
    command = [DRIVER, "describe", "--modules", folder / "build/layers", "--layer", f"{LAYER}@{version}"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert said["layer"] == f"{LAYER}@{version}"
    assert said["table"]["name"] == LAYER
    assert said["table"]["library"]["stated_version"] == version


def test_it_is_made_again_with_its_provider_and_goes_with_it(folder: Path, version: str) -> None:
    name = f"{LAYER}@{version}.so"
    first = built(folder)[name]
    assert make(folder, f"LAYERS={LAYER}@{version}").returncode == 0
    assert built(folder)[name] == first
    made_by = folder / f"providers/ucx-{version}/provider.mk"
    made_by.write_text(made_by.read_text() + "# another\n")
    assert make(folder, f"LAYERS={LAYER}@{version}").returncode == 0
    assert built(folder)[name] != first
    # another layer's build leaves it alone, until the provider has gone
    assert make(folder, "clean-strangers", "LAYERS=null-self").returncode == 0
    assert set(built(folder)) == {name, f"{LAYER}@{version}.provider", "null-self.so"}
    shutil.move(made_by.parent, folder / "gone")
    assert make(folder, "clean-strangers", "LAYERS=null-self").returncode == 0
    assert set(built(folder)) == {"null-self.so"}
    refused = make(folder, f"LAYERS={LAYER}@{version}")
    assert f"no provider makes: {LAYER}@{version}" in refused.stderr
