# SPDX-License-Identifier: BSD-3-Clause
"""What an endpoint finds around it: our variables, an empty home, an empty folder, and nothing of the user's.

Each wrong surrounding here once changed times by up to seven times, with the path unchanged and the attempt valid.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import CAMPAIGN, Agent, Start, block_here, one
from testbed_helpers import AGENT, BUILT, make_launch, read_json, real_launch

from cadge_harness.testbed.model import Testbed
from cadge_results import LaunchRecord, NodeFacts

Json = dict[str, Any]

OURS = {"PATH", "HOME", "TMPDIR", "LC_ALL", "CADGE_MARK"}
"""All that an endpoint that no launcher starts is given."""
OF_A_SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}
"""What sh adds by itself; it steers nothing."""
WRONG = {
    "UCX_RNDV_THRESH": "0",
    "UCX_CONFIG_DIR": "/somewhere",
    "FI_SHM_DISABLE_CMA": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "PMIX_MCA_gds": "hash",
    "PRTE_MCA_hwloc_base_binding_policy": "none",
    "OPAL_PREFIX": "/somewhere",
    "LD_LIBRARY_PATH": "/somewhere",
    "LD_BIND_NOW": "1",
    "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.mxfast=0",
    "XDG_CONFIG_HOME": "/somewhere",
    "CADGE_TESTS": "two\nlines=2",
}


OF_THE_USER = "/home/somebody/bin"


@pytest.fixture(autouse=True)
def _plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the fake driver by the system's Python: a wrapper around another one may set variables of its own."""
    monkeypatch.setenv("PATH", f"/usr/bin:/bin:{OF_THE_USER}")


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start agents in a surrounding where everything is wrong; returns the user's home."""
    for name, value in WRONG.items():
        monkeypatch.setenv(name, value)
    home = tmp_path / "users-home"
    (home / ".openmpi").mkdir(parents=True)
    (home / ".openmpi/mca-params.conf").write_text("btl_vader_single_copy_mechanism = none\n")
    (home / "ucx.conf").write_text("UCX_RNDV_THRESH=0\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """Where endpoints write what they find."""
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


def check_seen(seen: Path, count: int, more: set[str] | None = None) -> list[Json]:
    """Check what each endpoint found and return it; `more`: names of variables that are allowed beside ours."""
    found = [read_json(seen / f"{number}.json") for number in range(count)]
    for one_seen in found:
        environment = one_seen["environment"]
        assert environment.keys() - OF_A_SHELL - (more or set()) == OURS
        assert OF_THE_USER not in environment["PATH"]
        assert not {name for name, value in WRONG.items() if environment.get(name) == value}
        assert (one_seen["files"], one_seen["home"]) == ([], [])
        assert one_seen["folder"] == environment["HOME"] != os.environ["HOME"]
    return found


NO_NAMESPACES = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
POSIX = {"UCX_POSIX_DIR", "OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"}


def of_memory(record: Json) -> set[str]:
    """Return the variables that lead libraries to a folder of ours where a host could not have its own /dev/shm."""
    return POSIX if record["shared_memory"][0]["kind"] == "folder" else set()


@pytest.mark.parametrize("kind", ["private", "folder"])
def test_an_endpoint_finds_nothing_of_the_users(
    start: Start, here: Testbed, wrong: Path, seen: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    del wrong
    if kind == "private":
        request.getfixturevalue("own_namespaces")
    elif os.geteuid() != 0:
        pytest.skip("takes a capability from root")
    launches = [one("l1", look=seen), one("l2", look=seen)]
    agent = start(block_here(here, *launches), prefix=NO_NAMESPACES if kind == "folder" else None)
    records = agent.records()
    assert {record["status"] for record in records.values()} == {"done"}
    assert records["l1"]["shared_memory"][0]["kind"] == kind
    found = check_seen(seen, 2, POSIX if kind == "folder" else None)
    assert not Path(found[0]["folder"]).exists(), "it goes with the agent"
    (stated,) = records["l1"]["environment"]
    assert stated["host"] == "localhost"
    said = {**stated["variables"], **records["l1"]["shared_memory"][0]["variables"]}
    assert said.items() <= found[0]["environment"].items()
    assert set(said) == set(found[0]["environment"]) - {"CADGE_MARK"} - OF_A_SHELL
    LaunchRecord.from_object({**records["l1"], "result": None}, source="a record of the agent")


@pytest.mark.long
def test_what_a_launch_leaves_in_its_home_the_next_does_not_find(
    start: Start, here: Testbed, tmp_path: Path, seen: Path
) -> None:
    agent = start(block_here(here, one("l1", sleep_ms=3000, look=seen), one("l2", look=seen)))
    agent.until("launch_started")
    home = Path(read_json(tmp_path / "localhost" / "folders.json")[0], "home")
    (home / "deep").mkdir()
    (home / "deep" / "ucx.conf").touch()
    (home / "core").symlink_to(seen)
    records = agent.records()
    assert {record["status"] for record in records.values()} == {"done"}
    check_seen(seen, 2, of_memory(records["l1"]))


FAKE_MPIRUN = """#!/usr/bin/env python3
# Starts ranks as Open MPI does: on another host by a daemon with the environment of a login there.
import json, os, subprocess, sys
from pathlib import Path
argv = sys.argv[1:]
if argv == ["--version"]:
    sys.exit(print("mpirun (Open MPI) 4.1.4"))
if argv[0] == "daemon":
    # The login's environment, and on top what the launcher sets.
    sys.exit(subprocess.call(argv[2:], env={**os.environ, **json.loads(argv[1])}))
count = int(argv[argv.index("-n") + 1])
where = [entry.split(":") for entry in argv[argv.index("--host") + 1].split(",")]
hosts = [host for host, slots in where for _ in range(int(slots))]
Path(sys.argv[0]).with_name("mpirun.json").write_text(json.dumps({"environment": dict(os.environ)}))
ranks = []
for rank in range(count):
    own = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_MCA_ess": "pmi", "PMIX_RANK": str(rank)}
    if hosts[rank] == hosts[0]:
        ranks.append(subprocess.Popen(argv[-3:], env={**os.environ, **own}))
        continue
    own["CADGE_MARK"] = os.environ["CADGE_MARK"]
    login = json.loads(Path(sys.argv[0]).with_name("login.json").read_text())
    ranks.append(subprocess.Popen([sys.executable, sys.argv[0], "daemon", json.dumps(own), *argv[-3:]], env=login, cwd="/"))
sys.exit(max(rank.wait() for rank in ranks))
"""  # noqa: E501 - a program


@pytest.fixture
def mpirun(tmp_path: Path) -> Path:
    path = tmp_path / "mpirun"
    path.write_text(FAKE_MPIRUN)
    path.chmod(0o755)
    return path


OF_LAUNCHERS = {"OMPI_COMM_WORLD_RANK", "OMPI_MCA_ess", "PMIX_RANK"}
AS_ROOT = {f"{prefix}_ALLOW_RUN_AS_ROOT{rest}" for prefix in ("OMPI", "PRTE") for rest in ("", "_CONFIRM")}


def test_a_rank_finds_nothing_of_the_users(start: Start, here: Testbed, wrong: Path, seen: Path, mpirun: Path) -> None:
    block = block_here(here, {**one("l1", look=seen), "launcher": "mpirun"})
    record = start({**block, "mpirun": {"path": str(mpirun), "options": []}}).records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None), record["log_tail"]
    root = AS_ROOT if os.geteuid() == 0 else set()
    check_seen(seen, 2, OF_LAUNCHERS | root | of_memory(record))
    launcher = read_json(mpirun.with_name("mpirun.json"))["environment"]
    assert launcher.keys() - {"LC_CTYPE"} == OURS | root
    assert launcher["HOME"] != str(wrong)


def test_a_rank_on_another_host_finds_nothing_of_the_login_there(
    pair: Callable[..., tuple[Agent, Agent]], tmp_path: Path, seen: Path, wrong: Path, mpirun: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    login = {**WRONG, "PATH": os.environ["PATH"], "HOME": str(wrong), "PWD": "/"}
    (tmp_path / "login.json").write_text(json.dumps(login))
    monkeypatch.setenv("PATH", str(mpirun.parent), prepend=":")
    launch = {**make_launch("l1", ["h1", "h2"], look=seen), "launcher": "mpirun"}
    launch["settings"].update({"env.UCX_RNDV_THRESH": "8 k", "env.HOME": "/somewhere"})
    leader, follower = pair(launch)
    record = leader.records()["l1"]
    follower.records()
    assert (record["status"], record["reason"]) == ("done", None), record["log_tail"]
    names_whole = "OMPI_MCA_orte_keep_fqdn_hostnames"  # of the launcher, and stored as such
    first, second = check_seen(seen, 2, OF_LAUNCHERS | AS_ROOT | {"UCX_RNDV_THRESH", names_whole})
    set_by_the_sweep = {one_seen["environment"]["UCX_RNDV_THRESH"] for one_seen in (first, second)}
    assert set_by_the_sweep == {"8 k"}
    assert second["environment"]["OMPI_MCA_ess"] == "pmi", "what the launcher itself sets stays"
    assert first["folder"] != second["folder"], "each host has its own"
    assert [stated["host"] for stated in record["environment"]] == ["h1", "h2"]


@pytest.mark.parametrize("launcher", ["direct", "mpirun"])
def test_what_the_inventory_states_is_given(
    start: Start, here: Testbed, wrong: Path, seen: Path, mpirun: Path, launcher: str
) -> None:
    del wrong
    block = block_here(here, {**one("l1", look=seen), "launcher": launcher})
    block["hosts"][0].update(ld_library_path="/opt/a/lib:/opt/b/lib", opal_prefix="/opt/a")
    record = start({**block, "mpirun": {"path": str(mpirun), "options": []}}).records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None), record["log_tail"]
    for found in (read_json(seen / f"{number}.json")["environment"] for number in (0, 1)):
        assert found["LD_LIBRARY_PATH"] == "/opt/a/lib:/opt/b/lib"
        assert found["OPAL_PREFIX"] == "/opt/a"
    assert record["environment"][0]["variables"]["OPAL_PREFIX"] == "/opt/a"


# ------------------------------------------------------------------------------------------------- the libraries' word


def needs(layer: str) -> None:
    if not (BUILT / f"layers/{layer}.so").exists():
        pytest.skip(f"{layer} is not built")


@pytest.mark.parametrize("how", ["variable", "home", "folder", "configuration folder"])
@pytest.mark.first(1)
def test_ucx_is_not_steered(
    start: Start, here: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """By the least of its settings, which it shows in its log."""
    needs("native-ucx")
    place = tmp_path / "place"
    place.mkdir()
    (place / "ucx.conf").write_text("UCX_LOG_LEVEL=info\n")
    prefix: list[str] = []
    if how == "variable":
        monkeypatch.setenv("UCX_LOG_LEVEL", "info")
    if how == "home":
        monkeypatch.setenv("HOME", str(place))
    if how == "folder":
        monkeypatch.chdir(place)
        prefix = NO_NAMESPACES if os.geteuid() == 0 else []  # where there are namespaces, they bring a folder
    if how == "configuration folder":
        monkeypatch.setenv("UCX_CONFIG_DIR", str(place))
    record = start(block_here(here, real_launch("l1", "native-ucx")), prefix=prefix, build=BUILT).records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None)
    assert record["log_tail"] == ["", ""]


def test_ucx_is_steered_by_the_sweep(start: Start, here: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("native-ucx")
    monkeypatch.setenv("UCX_LOG_LEVEL", "trace")
    launch = {**real_launch("l1", "native-ucx"), "settings": {"env.UCX_LOG_LEVEL": "info"}}
    record = start(block_here(here, launch), build=BUILT).records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None)
    assert all("UCX  INFO" in tail and "UCX  TRACE" not in tail for tail in record["log_tail"]), record["log_tail"]
    assert record["launch"]["settings"] == {"env.UCX_LOG_LEVEL": "info"}
    assert record["environment"][0]["variables"]["UCX_LOG_LEVEL"] == "info"


@pytest.mark.parametrize("how", ["variable", "home"])
def test_open_mpi_is_not_steered(
    start: Start, here: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    needs("mpi-p2p")
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun")
    (tmp_path / ".openmpi").mkdir()
    for btl in ("vader", "sm"):  # the same one: its name changed with version 5
        if how == "variable":
            monkeypatch.setenv(f"OMPI_MCA_btl_{btl}_eager_limit", "12345")
        with (tmp_path / ".openmpi/mca-params.conf").open("a") as file:
            file.write(f"btl_{btl}_eager_limit = 12345\n")
    if how == "home":
        monkeypatch.setenv("HOME", str(tmp_path))
    launch = {**real_launch("l1", "mpi-p2p"), "launcher": "mpirun"}
    record = start(block_here(here, launch), build=BUILT).records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None), record["log_tail"]
    assert record["result"]["limits"]["short_bytes_max"] not in (0, 12345)


@pytest.mark.parametrize("mechanism", ["", "none"])
def test_open_mpi_tells_how_it_copies(start: Start, here: Testbed, mechanism: str) -> None:
    """As a sweep may set it; the library's own choice depends on the machine."""
    needs("mpi-p2p")
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun")
    none = {"env.OMPI_MCA_btl_vader_single_copy_mechanism": "none", "env.OMPI_MCA_smsc": "^cma,xpmem,knem"}
    settings = none if mechanism else {}  # the one for version 4, the other for version 5
    block = block_here(here, {**real_launch("l1", "mpi-p2p"), "launcher": "mpirun", "settings": settings})
    record = start(block, build=BUILT).records()["l1"]
    assert (record["status"], record["reason"]) == ("done", None), record["log_tail"]
    used = record["result"]["path"][0]["used"]
    (told,) = re.findall(r"; single copy ([^;]+); eager_limit [1-9]\d*; rndv_eager_limit [1-9]\d*$", used)
    assert told == mechanism or (not mechanism and re.match(r"(xpmem|cma|knem|emulated|none)$|not told \(cma", told))


@pytest.mark.long
def test_the_libraries_of_a_build_are_those_that_an_endpoint_would_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("native-ucx")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "users"))
    stated = tmp_path / "stated"
    for folder in (tmp_path / "users", stated):
        folder.mkdir()
    name, facts = ucp_of(tmp_path)
    shutil.copy(facts["file"], tmp_path / "users" / name)
    assert ucp_of(tmp_path)[1]["file"] == facts["file"]
    shutil.copy(facts["file"], stated / name)
    assert ucp_of(tmp_path, "--ld-library-path", str(stated))[1]["file"] == str(stated / name)


def test_the_systems_own_settings_are_told_by_their_hashes(tmp_path: Path) -> None:
    (tmp_path / "ompi/etc/deep").mkdir(parents=True)
    (tmp_path / "ompi/etc/openmpi-mca-params.conf").write_text("btl = self\n")
    (tmp_path / "ompi/etc/deep/a.ini").touch()
    (tmp_path / "ompi/etc/openmpi-default-hostfile").touch()
    argv = [sys.executable, str(AGENT), "facts", "--opal-prefix", str(tmp_path / "ompi")]
    told = json.loads(subprocess.run(argv, check=True, capture_output=True, timeout=60).stdout)
    NodeFacts.from_object(told, source="facts of a node")
    own = {path: facts for path, facts in told["configuration"].items() if path.startswith(str(tmp_path))}
    assert own == {
        f"{tmp_path}/ompi/etc/deep/a.ini": {
            "bytes": 0,
            "sha256": hashlib.sha256(b"").hexdigest(),
            "lines": 0,
            "packaged": False,
        },
        f"{tmp_path}/ompi/etc/openmpi-mca-params.conf": {
            "bytes": 11,
            "sha256": hashlib.sha256(b"btl = self\n").hexdigest(),
            "lines": 1,
            "packaged": False,
        },
    }
    system = Path("/etc/openmpi/openmpi-mca-params.conf")
    if system.exists():
        assert told["configuration"][str(system)]["sha256"] == hashlib.sha256(system.read_bytes()).hexdigest()


def ucp_of(work: Path, *more: str) -> tuple[str, Json]:
    """What `agent check` says of UCX."""
    argv = [sys.executable, str(AGENT), "check", "--work", str(work), "--campaign", CAMPAIGN, "--host", "localhost"]
    subprocess.run([*argv, "--build", str(BUILT), *more], check=True, capture_output=True, timeout=60)
    libraries = read_json(work / "node.json")["libraries"]
    (name,) = [soname for soname in libraries if soname.startswith("libucp.")]
    return name, libraries[name]
