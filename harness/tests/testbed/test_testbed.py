# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import getpass
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cadge_harness.errors import UnfitError, UsageError
from cadge_harness.native.hosts import Hosts
from cadge_harness.native.tool import Ask
from cadge_harness.native.tools import by_name, why_absent
from cadge_harness.paths import find_checkout
from cadge_harness.testbed import emulated as testbed_emulated
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed, TestbedKind
from cadge_results import Store

HERE = Path(__file__).resolve().parent
Inside = Callable[..., subprocess.CompletedProcess[str]]


def machine() -> dict[str, list[str]]:
    """What must be the same before a testbed and after it."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
    ports = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        listening = [row.split()[1] for row in rows if row.split()[3] in ("0A", "07")]
        ports += [address for address in listening if not address.startswith("0100007F:")]  # others test on loopback
    return {
        "links": sorted(line.split(":")[1].strip() for line in links),
        "mounts": sorted(
            row.split(" - ")[0].split()[4] for row in Path("/proc/self/mountinfo").read_text().splitlines()
        ),
        "ports": sorted(ports),
        "shm": sorted(path.name for path in Path("/dev/shm").iterdir()),
        "named": sorted(str(path) for path in Path("/run/netns").glob("*")),
    }


def ports_more_than(before: dict[str, list[str]]) -> list[str]:
    """Ports that are in use now and were not. Others on the machine open some for a moment, which are waited for."""
    deadline = time.monotonic() + 10
    while (more := sorted(set(machine()["ports"]) - set(before["ports"]))) and time.monotonic() < deadline:
        time.sleep(0.5)
    return more


def supervisors(folder: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in line and b"supervisor.py" in line:
            found.append(int(path.parent.name))
    return found


@pytest.mark.alone  # others come and go in /dev/shm
def test_up_twice_and_down_leave_the_machine_as_it_was(own_state: Path) -> None:
    before = machine()
    first = testbeds.up()
    assert first["state"] == "up"
    assert first["made"]
    during = machine()
    assert during["links"] == before["links"]
    assert not ports_more_than(before)
    assert during["mounts"] == before["mounts"]
    again = testbeds.up()
    assert not again["made"]
    assert again["pid"] == first["pid"]
    assert testbeds.status()["hosts"] == ["h1", "h2"]
    assert supervisors(own_state)
    assert testbeds.down()
    assert not testbeds.down()
    assert testbeds.status()["state"] == "down"
    assert not supervisors(own_state)
    assert {**machine(), "ports": []} == {**before, "ports": []}
    assert not ports_more_than(before)
    assert {path.name for path in own_state.iterdir()} == {"lock"}


def test_ups_at_once_make_one(own_state: Path) -> None:
    code = "import json; from cadge_harness.testbed import testbeds; print(json.dumps(testbeds.up()))"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        answers = [json.loads(process.communicate(timeout=120)[0]) for process in started]
        assert sorted(answer["made"] for answer in answers) == [False, False, True]
        assert len({answer["pid"] for answer in answers}) == 1
    finally:
        testbeds.down()
    assert not supervisors(own_state)


class User:
    """Another process that uses the emulated testbed, as a sweep does, until it ends or is killed."""

    CODE = (
        "import sys\n"
        "from cadge_harness.testbed import testbeds\n"
        "used = testbeds.resolve('emulated', own=sys.argv[1] == 'own')\n"
        "print(used.use.folder, flush=True)\n"
        "sys.stdin.read()\n"
        "testbeds.release(used)\n"
    )

    def __init__(self, which: str = "shared") -> None:
        argv = [sys.executable, "-c", self.CODE, which]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.folder = Path(self.process.stdout.readline().strip())

    def end(self, *, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        self.process.communicate(timeout=60)


@pytest.fixture
def user() -> Iterator[Callable[..., User]]:
    """Make users, which have ended when the test has."""
    made: list[User] = []

    def make(which: str = "shared") -> User:
        made.append(User(which))
        return made[-1]

    yield make
    for one in made:
        one.end(kill=True)


def test_a_killed_campaigns_testbed_goes_with_its_next_user(own_state: Path, user: Callable[..., User]) -> None:
    killed = user()
    assert testbeds.status()["owner"] == "campaign"
    killed.end(kill=True)
    left = testbeds.status()
    assert (left["owner"], left["users"]) == ("nobody", [])
    assert testbeds.resolve("emulated", start=False).use is None, "planning changes nothing"
    taken = testbeds.resolve("emulated")
    assert "was killed" in taken.notes[0]
    assert testbeds.status()["pid"] == left["pid"]
    assert testbeds.status()["owner"] == "campaign"
    testbeds.release(taken)
    assert not supervisors(own_state)


@pytest.mark.parametrize("kill", [False, True])
def test_a_testbed_goes_with_its_last_user(kill: bool, own_state: Path, user: Callable[..., User]) -> None:
    first, second = user(), user()
    up = testbeds.status()
    assert {line.split()[1] for line in up["users"]} == {str(one.process.pid) for one in (first, second)}
    first.end(kill=kill)
    assert testbeds.status()["pid"] == up["pid"], "the other one measures on"
    assert len(testbeds.status()["users"]) == 1
    second.end()
    assert testbeds.status()["state"] == "down"
    assert not supervisors(own_state)


def test_a_testbed_is_not_taken_down_under_its_users(own_state: Path, user: Callable[..., User]) -> None:
    testbeds.up()
    one = user()
    with pytest.raises(UnfitError, match=f"in use .process {one.process.pid} ") as caught:
        testbeds.down()
    assert caught.value.commands == (f"kill {one.process.pid}",)
    one.end(kill=True)
    assert testbeds.status()["owner"] == "user", "it was started by hand, and stays"
    assert testbeds.down()
    assert not supervisors(own_state)


def test_a_sweeps_testbed_stays_where_a_user_asked_for_one_meanwhile(
    own_state: Path, user: Callable[..., User]
) -> None:
    one = user()
    assert not testbeds.up()["made"]
    one.end()
    assert testbeds.status()["owner"] == "user"
    testbeds.down()
    assert not supervisors(own_state)


@pytest.mark.parametrize("kill", [False, True])
def test_who_measures_beside_another_has_a_testbed_of_his_own(
    kill: bool, own_state: Path, user: Callable[..., User]
) -> None:
    shared, own = user(), user("own")
    assert (shared.folder, own.folder.parent) == (own_state, own_state)
    ask = ["ip", "netns", "identify"]  # any program: both answer
    (there,) = testbeds.status()["own"]
    links = [Path(f"/proc/{pid}/ns/net").readlink() for pid in (testbeds.status()["pid"], there["pid"])]
    assert len(set(links)) == 2
    assert testbeds.exec_command(ask) == 0
    shared.end(kill=kill)
    assert testbeds.status()["own"] == [there], "the other one measures on"
    own.end(kill=kill)
    testbeds.release(testbeds.resolve("emulated"))  # takes away what killed ones left
    assert not supervisors(own_state)
    assert {path.name for path in own_state.iterdir()} == {"lock"}


def test_a_sweep_has_as_many_hosts_as_it_asks_for(own_state: Path) -> None:
    """Below what is up the first ones, above it a testbed of its own, and the one that is up stays as it is."""
    planned = testbeds.resolve("emulated", start=False, hosts=3)
    made = testbeds.resolve("emulated", hosts=3)
    assert [host.name for host in planned.hosts] == [host.name for host in made.hosts] == ["h1", "h2", "h3"]
    usual = testbeds.resolve("emulated", hosts=2)
    assert usual.hosts == made.hosts, "a sweep that asks for nothing uses all"
    fewer = testbeds.resolve("emulated", hosts=2, exactly=True)
    assert fewer.hosts == made.hosts[:2]
    assert len(testbeds.resolve("emulated", start=False, hosts=4, exactly=True).hosts) == 4
    more = testbeds.resolve("emulated", hosts=4, exactly=True)
    assert len(more.hosts) == 4
    assert "3 hosts: 4 hosts are made for this campaign alone" in more.notes[0]
    assert len(testbeds.status()["hosts"]) == 3
    for one in (more, fewer, usual, made):
        testbeds.release(one)
    assert not supervisors(own_state)


def test_a_testbed_that_was_killed_is_noticed_and_made_anew(own_state: Path) -> None:
    first = testbeds.up()
    subprocess.run(testbed_emulated.as_root(["kill", "-KILL", str(first["pid"])]), check=True)
    while testbeds.status()["state"] == "up":
        time.sleep(0.05)
    assert testbeds.status()["state"] == "stale"
    with pytest.raises(UnfitError, match="no emulated testbed is up"):
        testbeds.exec_command(["true"])
    second = testbeds.up()
    assert second["made"]
    assert second["pid"] != first["pid"]
    testbeds.down()
    assert not supervisors(own_state)


def test_three_hosts_share_data_and_raw_links(own_state: Path) -> None:
    del own_state
    testbeds.up(3)
    try:
        with pytest.raises(UsageError, match="3 hosts is up, not 2"):
            testbeds.up(2)
        if shutil.which("ping"):
            assert testbeds.exec_command(["ping", "-c1", "-W2", "198.19.0.13"], "h1") == 0
        assert testbeds.exec_command(["ip", "link", "show", "raw0"], "h3") == 0
    finally:
        testbeds.down()


def test_a_host_has_a_world_of_its_own(emulated: Testbed, inside: Inside) -> None:
    assert emulated.kind is TestbedKind.EMULATED
    assert "only-h1" in inside("sh", "-c", "touch /dev/shm/only-h1; ls /dev/shm", host="h1").stdout
    assert "only-h1" not in inside("ls", "/dev/shm", host="h2").stdout
    assert not Path("/dev/shm/only-h1").exists()
    inside("rm", "/dev/shm/only-h1", host="h1")
    assert inside("hostname", host="h2").stdout == "h2\n"
    kinds = ("net", "pid", "mnt", "ipc", "uts")
    files = [f"/proc/self/ns/{kind}" for kind in kinds]
    there = [inside("readlink", *files, host=host).stdout.split() for host in ("h1", "h2")]
    for kind, *links in zip(kinds, *there, (str(Path(file).readlink()) for file in files), strict=True):
        assert len(set(links)) == 3, kind
    devices = json.loads(inside("ip", "-json", "address", host="h1").stdout)
    addresses = {dev["ifname"]: [a["local"] for a in dev["addr_info"]] for dev in devices}
    assert addresses["mgmt0"] == ["198.18.0.11"]
    assert addresses["data0"] == ["198.19.0.11"]
    assert addresses["raw0"] == []
    assert all("UP" in dev["flags"] for dev in devices)
    assert "198.18.0.12 h2" in inside("cat", "/etc/hosts", host="h1").stdout
    assert "198.18.0.12 h2" not in Path("/etc/hosts").read_text()


def test_a_host_has_a_tmp_of_its_own(inside: Inside) -> None:
    """What libraries put there (Open MPI its sessions, others their sockets) meets nobody else's of the same name."""
    with tempfile.NamedTemporaryFile(dir="/tmp") as of_the_machine:
        mine = f"/tmp/h1-{os.getpid()}"
        inside("sh", "-c", f"umask 0; echo h1 > {mine}", host="h1")
        assert inside("stat", "-c", "%a", "/tmp", host="h1").stdout == "1777\n"
        assert inside("cat", mine, host="h1").stdout == "h1\n"
        assert not Path(mine).exists()
        assert inside("test", "-e", mine, host="h2", check=False).returncode == 1
        assert inside("test", "-e", of_the_machine.name, host="h1", check=False).returncode == 1


def test_hosts_see_what_campaigns_use_of_tmp(own_state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout may lie there. One that a testbed does not see has another one made for it."""
    inside_tmp = Path(tempfile.mkdtemp(prefix="ct-", dir="/tmp"))
    for name in ("one", "other"):
        (inside_tmp / name / "layers/include/cadge").mkdir(parents=True)
        (inside_tmp / name / "layers/include/cadge/layer.h").write_text("")
    (tmp_path / "link").symlink_to(inside_tmp / "one")
    try:
        monkeypatch.setenv("CADGE_ROOT", str(inside_tmp / "one"))
        testbeds.up()
        header = f"{inside_tmp}/one/layers/include/cadge/layer.h"
        assert testbeds.exec_command(["test", "-e", header], "h2") == 0
        assert testbeds.exec_command(["test", "-e", str(inside_tmp / "other")], "h2") == 1
        monkeypatch.setenv("CADGE_ROOT", str(tmp_path / "link"))
        same = testbeds.resolve("emulated")
        assert same.notes == ()
        monkeypatch.setenv("CADGE_ROOT", str(inside_tmp / "other"))
        own = testbeds.resolve("emulated")
        assert f"do not see {inside_tmp}/other: 2 hosts are made" in own.notes[0]
        (there,) = testbeds.status()["own"]
        assert there["folder"] != testbeds.status()["folder"]
        testbeds.release(own)
        testbeds.release(same)
        assert not testbeds.status()["own"]
        testbeds.down()
        assert not supervisors(own_state)
    finally:
        shutil.rmtree(inside_tmp)


@pytest.mark.paired
def test_ranks_fare_where_a_host_has_a_tmp_of_its_own(emulated: Testbed) -> None:
    tool = by_name("native-mpi window")
    assert tool
    if why := why_absent(tool):
        pytest.skip(why)
    ask = Ask(bytes=8, window=16, place="within", address="127.0.0.1", device="lo", port=18790, cpus=(-1, -1))
    usual = tool.commands(ask)
    few = replace(usual, client=tuple("640" if word == usual.client[4] else word for word in usual.client))
    with Hosts(emulated) as hosts:
        fared = hosts.run(replace(tool, commands=lambda _ask: few), ask, "h1", "h1")
    assert len(fared.wall_ns) == 2


OVER_MPI = """\
schema: cadge.sweep/2
title: ranks of hosts with whole names
layers: mpi-p2p
places: between
waits: poll
patterns: [{pattern: rpc, request_bytes: 8B}]
launches: 1
floors: false
duration: {default: 20ms}
"""


@pytest.mark.long
@pytest.mark.parametrize("aliases", [(), ("first", "second")], ids=["whole names", "aliases of the inventory"])
@pytest.mark.usefixtures("own_state")
def test_ranks_meet_where_only_whole_names_are_known(
    aliases: tuple[str, ...], short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of `node1.rack.example` no resolver knows `node1`, which Open MPI makes of it unasked; none knows an alias."""
    if not (find_checkout().modules / "mpi-p2p.so").exists():
        pytest.skip("mpi-p2p is not built")
    names = ["node1.rack.example", "node2.rack.example"]
    with monkeypatch.context() as patch:
        patch.setattr(testbed_emulated, "host_names", lambda hosts: names[:hosts])
        testbeds.up()
    used = testbeds.resolve("emulated")
    try:
        assert [host.name for host in used.hosts] == names
        asked = "uname -n; for name in node1 node1.rack.example; do getent hosts $name >/dev/null; echo $?; done"
        code = "import sys; from cadge_harness.testbed import testbeds as t; t.exec_command(sys.argv[2:], sys.argv[1])"
        for name in names:
            argv = [sys.executable, "-c", code, name, "sh", "-c", asked]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
            assert done.stdout.split() == [name, "2", "0"]
        sweep = short_folder / "over-mpi.yml"
        sweep.write_text(OVER_MPI)
        on = ["--testbed", "emulated"]
        if aliases:
            # hosts reach each other by what any user's ssh reads, and the controller lies in their network
            for name in names:
                copied = [sys.executable, "-c", code, name, "cp", "/run/cadge/ssh_config", "/etc/ssh/ssh_config"]
                subprocess.run(copied, check=True, timeout=60)
            hosts = json.loads(used.inventory_path.read_text())["cadge"]["hosts"]
            renamed = {alias: hosts[name] for alias, name in zip(aliases, names, strict=True)}
            inventory = short_folder / "aliases.json"
            inventory.write_text(json.dumps({"cadge": {"hosts": renamed}}))
            on = ["--inventory", str(inventory)]
        results = short_folder / "results"
        argv = [sys.executable, "-m", "cadge_cli.cli", "run", "--sweep", str(sweep), *on]
        argv += ["--no-report", "--results", str(results)]
        prefix = [*used.exec_prefix] if aliases else []
        done = subprocess.run([*prefix, *argv], capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        campaign = Store(results).open("last")
        assert {outcome.status for outcome in campaign.outcomes()} == {"valid"}
        ends = {end.host for record in campaign.launches() for end in record.launch.endpoints}
        assert ends == set(aliases or names)
    finally:
        testbeds.release(used)


@pytest.mark.long
def test_ssh_from_host_to_host_by_name(emulated: Testbed, inside: Inside) -> None:
    assert inside(*emulated.host_ssh, "h2", "hostname", host="h1").stdout == "h2\n"
    assert inside(*emulated.host_ssh, "h1", "whoami", host="h2").stdout.strip() == getpass.getuser()


def test_host_keys_are_checked(emulated: Testbed, inside: Inside, tmp_path: Path) -> None:
    assert emulated.ssh_config is not None
    settings = inside("ssh", "-F", str(emulated.ssh_config), "-G", "h1").stdout.splitlines()
    assert {"stricthostkeychecking true", "batchmode yes", "identityagent none"} <= set(settings)
    wrong = tmp_path / "known_hosts"
    lines = (emulated.ssh_config.parent / "known_hosts").read_text().splitlines()
    swapped = [
        f"{line.split()[0]} {other.split(' ', 1)[1]}" for line, other in zip(lines, reversed(lines), strict=True)
    ]
    wrong.write_text("\n".join(swapped) + "\n")
    options = ["-F", str(emulated.ssh_config), "-o", f"UserKnownHostsFile={wrong}"]
    answer = inside("ssh", *options, "h1", "true", check=False)
    assert answer.returncode == 255
    assert "Host key verification failed" in answer.stderr


def test_keys_are_the_users_alone(emulated: Testbed) -> None:
    assert emulated.ssh_config is not None
    folder = emulated.ssh_config.parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "id_ed25519").stat().st_mode & 0o777 == 0o600
    assert (folder / "id_ed25519").stat().st_uid == os.geteuid()


def test_exec_hands_on_words_and_exit_status(inside: Inside) -> None:
    assert inside("printf", "%s|", "a b", "$HOME", "it's", host="h1").stdout == "a b|$HOME|it's|"
    assert inside("sh", "-c", "exit 7", host="h1", check=False).returncode == 7
    assert inside("sh", "-c", "exit 8", check=False).returncode == 8
    assert "mgmt0" in inside("ip", "-br", "link").stdout
    with pytest.raises(UsageError, match="no host 'h9'; it has h1, h2"):
        testbeds.exec_command(["true"], "h9")


@pytest.mark.long
def test_sshd_that_dies_comes_back(emulated: Testbed, inside: Inside) -> None:
    del emulated
    listener = inside("sh", "-c", "ps -o pid= -C sshd | head -1", host="h1").stdout.strip()
    inside("kill", "-KILL", listener, host="h1", check=False)
    deadline = time.monotonic() + 20
    while inside("true", host="h1", check=False).returncode != 0:
        assert time.monotonic() < deadline


# ------------------------------------------------------------------------------------------------ choosing a testbed


def resolve_as(prefix: list[str], kind: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import json, sys\n"
        "from cadge_harness import errors\n"
        "from cadge_harness.testbed import testbeds\n"
        "try:\n"
        "    found = testbeds.resolve(sys.argv[1])\n"
        "except errors.HarnessError as error:\n"
        "    print(json.dumps({'error': str(error), 'commands': error.commands})); sys.exit(error.exit_code)\n"
        "print(json.dumps({'kind': found.kind, 'notes': found.notes}))\n"
    )
    environment = {**os.environ, "CADGE_STATE": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*prefix, sys.executable, "-c", code, kind]
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root's rights, so it needs them")
@pytest.mark.parametrize("how", ["capability", "user"])
@pytest.mark.first(1)
def test_without_the_right_to_make_namespaces_auto_is_local_and_says_why(how: str, short_folder: Path) -> None:
    prefix = {
        "capability": ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
        "user": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
    }[how]
    folder = short_folder / f"state-{how}"
    folder.mkdir(mode=0o700)
    if how == "user":
        os.chown(folder, 65534, 65534)
        short_folder.chmod(0o711)
        if subprocess.run([*prefix, sys.executable, "-c", "import cadge_harness"], check=False).returncode != 0:
            pytest.skip("the Python environment is not readable for another user")
    answer = resolve_as(prefix, "auto", folder)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["kind"] == "local"
    assert len(found["notes"]) == 1
    assert found["notes"][0].startswith("testbed local, not emulated: ")
    assert "\n" not in found["notes"][0]
    answer = resolve_as(prefix, "emulated", folder)
    assert answer.returncode == 3
    assert "--testbed local" in json.loads(answer.stdout)["commands"][-1]


def test_sudo_that_needs_a_password_ends_with_the_commands_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testbed_emulated.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(testbed_emulated, "may_be_root", lambda: (False, "sudo needs your password"))
    monkeypatch.setattr(testbed_emulated.sys, "stdin", io.StringIO())
    with pytest.raises(UnfitError, match="sudo needs your password") as caught:
        testbed_emulated.as_root(["true"])
    assert caught.value.exit_code == 3
    assert caught.value.commands == ("sudo -v", "cadge", "# or, without root: cadge run --testbed local")


def test_local_needs_nothing(state: Path) -> None:
    del state
    found = testbeds.resolve("local")
    assert found.kind is TestbedKind.LOCAL
    assert [(host.device, host.address) for host in found.hosts] == [("lo", "127.0.0.1")]
    assert found.exec_prefix == ()
    listing = json.loads(found.inventory_path.read_text())
    assert listing["cadge"]["hosts"]["localhost"]["ansible_connection"] == "local"


def test_unknown_kind_and_two_answers_at_once(state: Path, tmp_path: Path) -> None:
    del state
    with pytest.raises(UsageError, match="there is no testbed 'lokal'"):
        testbeds.resolve("lokal")
    with pytest.raises(UsageError, match="not both"):
        testbeds.resolve("local", tmp_path / "inventory.yml")


def test_a_state_folder_of_somebody_else_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "state"
    other.symlink_to(tmp_path)
    monkeypatch.setenv("CADGE_STATE", str(other))
    with pytest.raises(UnfitError, match="not a folder of your own"):
        testbeds.status()


# -------------------------------------------------------------------------------------------------------- inventories

GOOD = {"ansible_host": "10.0.0.1", "cadge_device": "ib0", "cadge_address": "10.1.0.1", "cadge_cpus": [2, 3]}


def inventory(tmp_path: Path, group: str, **hosts: dict[str, object]) -> Path:
    path = tmp_path / "lab.yml"
    path.write_text(json.dumps({group: {"hosts": hosts}}))
    return path


def test_an_inventory_gives_its_hosts(tmp_path: Path) -> None:
    second = {**GOOD, "cadge_address": "10.1.0.2", "cadge_management_address": "10.0.0.9", "cadge_raw_device": "eth9"}
    second |= {"cadge_ld_library_path": "/opt/a:/opt/b", "cadge_opal_prefix": "/opt/c"}
    path = inventory(tmp_path, "cadge", n1=GOOD, n2=second)
    path.write_text(json.dumps({**json.loads(path.read_text()), "others": {"hosts": {"login": {}}}}))
    found = testbeds.resolve("auto", path)
    assert found.kind is TestbedKind.CLUSTER
    assert found.name == "lab"
    assert [host.name for host in found.hosts] == ["n1", "n2"]
    assert [host.management_address for host in found.hosts] == ["10.0.0.1", "10.0.0.9"]
    assert found.hosts[0].cpus == (2, 3)
    assert found.hosts[1].raw_device == "eth9"
    assert (found.hosts[0].ld_library_path, found.hosts[0].opal_prefix) == ("", "")
    assert (found.hosts[1].ld_library_path, found.hosts[1].opal_prefix) == ("/opt/a:/opt/b", "/opt/c")
    assert found.ports == (18600, 18699)


def test_hosts_of_child_groups_count(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text("[left]\nn1 cadge_device=ib0 cadge_address=10.1.0.1\n[cadge:children]\nleft\n")
    assert [host.name for host in testbeds.resolve("auto", path).hosts] == ["n1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cadge_addres": "10.1.0.1"}, "there is no variable cadge_addres; did you mean cadge_address?"),
        (
            {"cadge_address": "ten", "cadge_cpus": "0-3"},
            "must be an IPv4 or IPv6 address.*\n.*must be a list of processor numbers",
        ),
    ],
)
def test_what_is_wrong_with_an_inventory_is_said(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = inventory(tmp_path, "cadge", n1={**GOOD, **change})
    with pytest.raises(UsageError, match=message):
        testbeds.resolve("auto", path)


def test_no_host_matches_is_an_error(tmp_path: Path) -> None:
    path = inventory(tmp_path, "cage", n1=GOOD)
    with pytest.raises(UsageError, match=r"no host matches.*Groups there: cage. Did you mean 'cage'") as refused:
        testbeds.resolve("auto", path)
    assert [line.split()[-2:] for line in refused.value.commands] == [["testbed", "example"]]


def test_reading_an_inventory_leaves_the_users_ansible_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".ansible.cfg").write_text("[inventory]\nenable_plugins = nothing_of_the_kind\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ANSIBLE_INVENTORY_ENABLED", "nothing_of_the_kind")
    testbeds.resolve("auto", inventory(tmp_path, "cadge", n1=GOOD))
    assert [path.name for path in home.iterdir()] == [".ansible.cfg"]


def test_an_inventory_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no inventory"):
        testbeds.resolve("auto", tmp_path / "none.yml")
    broken = tmp_path / "broken.yml"
    broken.write_text("cadge: [unclosed\n")
    with pytest.raises(UsageError, match="cannot be read as an inventory"):
        testbeds.resolve("auto", broken)


def test_two_hosts_with_one_address(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"hosts n1 and n2 have the same cadge_address: 10.1.0.1\n"):
        testbeds.resolve("auto", inventory(tmp_path, "cadge", n1=GOOD, n2=GOOD))


def test_signals_end_the_supervisor(own_state: Path) -> None:
    made = testbeds.up()
    subprocess.run(testbed_emulated.as_root(["kill", f"-{signal.SIGTERM}", str(made["pid"])]), check=True)
    deadline = time.monotonic() + 20
    while testbeds.status()["state"] == "up":  # a process that is ending has no command line for a while
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not supervisors(own_state)
    assert not testbeds.down()


# ----------------------------------------------------------------------------------------------- what hosts are made of


@pytest.mark.skipif(os.geteuid() != 0, reason="replaces a file of /etc, which takes root")
def test_hosts_keep_their_accounts_where_a_program_replaces_those_of_the_machine(
    emulated: Testbed, inside: Inside, tmp_path: Path
) -> None:
    """As apt does: it writes a new file and renames it over the old one."""
    del emulated
    before = {name: inside("cat", f"/etc/{name}", host="h1").stdout for name in ("passwd", "hosts", "hostname")}
    for name in before:
        path = Path("/etc", name)
        if path.is_mount() or not path.exists():
            continue  # a container's engine holds it
        shutil.copy2(path, tmp_path / name)
        part = path.with_name(f"{name}.cadge-test")
        shutil.copy2(path, part)
        part.replace(path)
    after = {name: inside("cat", f"/etc/{name}", host="h1").stdout for name in before}
    assert after == before
    assert after["hostname"] == "h1\n"
    assert "198.18.0.12 h2" in after["hosts"]
    mounted = inside("findmnt", "-rno", "TARGET", host="h1").stdout.split()
    assert [target for target in mounted if target.startswith("/etc")] == ["/etc"]


NOBODY = 65534
LENDER_CODE = """
import dataclasses, os, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import supervisor
from cadge_agent.site import lending
supervisor._check(supervisor._libc.unshare(supervisor.CLONE_NEWNS), "no mounts of its own")
supervisor.mount("none", "/", None, supervisor.MS_REC | supervisor.MS_PRIVATE)
supervisor.mount("tmpfs", "/run", "tmpfs")
plan = supervisor.SupervisorPlan(Path("/nowhere"), int(sys.argv[3]), 65534, 0o022, (), "", "")
supervisor.lend_rights(plan)
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(int(sys.argv[4]), int(sys.argv[4]), int(sys.argv[4]))
prefix = lending(sys.argv[5:])
os.execvp("env", ["env", *prefix, "sed", "-n", "s/^CapAmb:\\t//p", "/proc/self/status"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a host for another user, which takes root")
@pytest.mark.parametrize(
    ("user", "asked", "lent"),
    [
        (NOBODY, ["net_raw"], 1 << 13),
        (NOBODY, ["net_raw", "net_admin", "bpf", "ipc_lock"], 1 << 12 | 1 << 13 | 1 << 14 | 1 << 39),
        (NOBODY, [], 0),
        (NOBODY - 1, ["net_raw"], 0),  # a stranger on the host gets nothing
    ],
)
def test_a_host_lends_its_user_what_is_asked_for_and_nobody_else(user: int, asked: list[str], lent: int) -> None:
    folders = [str(testbed_emulated.SUPERVISOR.parent), str(HERE.parents[1] / "agent")]
    argv = [sys.executable, "-c", LENDER_CODE, *folders, str(NOBODY), str(user), *asked]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout, 16) == lent


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a host for another user, which takes root")
def test_no_more_rights_can_be_asked_for_than_a_host_lends() -> None:
    folders = [str(testbed_emulated.SUPERVISOR.parent), str(HERE.parents[1] / "agent")]
    argv = [sys.executable, "-c", LENDER_CODE, *folders, str(NOBODY), str(NOBODY), "sys_admin"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert done.stdout == ""


SUDO = """#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
  -v) touch "$0.known" ;;
  *) [ -e "$0.known" ] && [ ! -e "$0.forgets" ] ;;
esac
"""


@pytest.fixture
def sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A sudo that asks for a password, and a user of it on a terminal; its log says how it was called."""
    program = tmp_path / "sudo"
    program.write_text(SUDO)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getgroups", lambda: [27])
    monkeypatch.setattr(testbed_emulated, "_group_exists", lambda _gid: True)
    monkeypatch.setattr(testbed_emulated.grp, "getgrgid", lambda _gid: SimpleNamespace(gr_name="sudo"))
    monkeypatch.setattr(testbed_emulated, "RENEW_S", 0.05)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    testbed_emulated._keep_root.cache_clear()
    yield program
    (tmp_path / "sudo.forgets").touch()  # which ends what asks it again and again
    calls = (tmp_path / "sudo.log").read_text().count("-n -v")
    time.sleep(0.3)
    assert (tmp_path / "sudo.log").read_text().count("-n -v") <= calls + 1
    testbed_emulated._keep_root.cache_clear()


def test_a_password_is_asked_once_and_remembered_until_the_end(sudo: Path) -> None:
    """sudo forgets it after some minutes: a sweep would be asked for it at its end, by nobody's leave."""
    log = sudo.with_name("sudo.log")
    assert testbed_emulated.as_root(["true"]) == ["sudo", "-n", "--", "true"]
    assert testbed_emulated.as_root(["false"]) == ["sudo", "-n", "--", "false"]
    deadline = time.monotonic() + 20
    while log.read_text().splitlines().count("-n -v") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert log.read_text().splitlines().count("-v") == 1


def test_a_sudo_that_never_remembers_is_refused_with_what_to_do(sudo: Path) -> None:
    sudo.with_name("sudo.forgets").touch()
    with pytest.raises(UnfitError, match="asks for your password each time") as caught:
        testbed_emulated.as_root(["true"])
    assert caught.value.commands == ("sudo cadge", "# or, without root: cadge run --testbed local")


def test_without_a_terminal_nobody_is_asked_for_a_password(sudo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(UnfitError, match="sudo needs your password") as caught:
        testbed_emulated.as_root(["true"])
    assert caught.value.commands[0] == "sudo -v"
    assert "-v" not in sudo.with_name("sudo.log").read_text().splitlines()
