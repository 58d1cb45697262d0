# SPDX-License-Identifier: BSD-3-Clause
"""Playbooks and roles for real: over SSH on the emulated testbed, and on this machine by local connection."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from testbed_helpers import make_block, make_launch, node_folder, processes

from cadge_harness.errors import UnfitError
from cadge_harness.run import ansible_files, ansible_io
from cadge_harness.run.ansible_io import RunOutcome
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.inventory_file import tool
from cadge_harness.testbed.model import Testbed
from cadge_results import NodeFacts
from cadge_results.formats.event import BlockFinished, Event, LaunchFinished, LaunchStarted, Ready, Stage

Json = dict[str, Any]
PLAYBOOKS = ansible_files.playbooks()


class Campaign:
    """A campaign and what came of it."""

    def __init__(self, used: Testbed, work: Path, build: Path) -> None:
        self.testbed, self.work, self.build = used, work, build
        self.name = f"test-{os.getpid()}-{time.monotonic_ns()}"
        self.events: list[Event] = []
        self.records: list[Json] = []
        self.stop = threading.Event()

    def run(
        self, *blocks: list[Json], on_event: Callable[[Event], None] | None = None, tune: bool = False
    ) -> RunOutcome:
        made = [make_block(self.testbed, self.name, f"b{n}", launches) for n, launches in enumerate(blocks)]

        def event(what: Event) -> None:
            self.events.append(what)
            if on_event:
                on_event(what)

        return ansible_io.run_campaign(
            self.testbed,
            made,
            self.work,
            event,
            self.records.append,
            self.stop,
            build=self.build,
            tune=tune,
            programs=("never-heard-of", "sh"),
        )

    def folders(self) -> list[Path]:
        return [folder for host in self.testbed.hosts if (folder := node_folder(self.name, host.name)).exists()]

    def playbook(
        self, *names: str, extra: Json | None = None, check: bool = False, folder: Path = PLAYBOOKS
    ) -> subprocess.CompletedProcess[str]:
        """Run playbooks by hand with this campaign's variables."""
        given = {
            **json.loads((self.work / "variables.json").read_text()),
            "cadge_lease_socket": "/none",
            **(extra or {}),
        }
        variables = ansible_files.write_json(self.work / "by-hand.json", given)
        sockets = self.work / "s"
        sockets.mkdir(exist_ok=True)
        environment = ansible_files.environment(self.work, sockets, self.testbed)
        del environment["CADGE_EVENT_SOCKET"]
        environment["ANSIBLE_SSH_ARGS"] = "-o ControlMaster=no -o BatchMode=yes"
        argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(self.testbed.inventory_path)]
        argv += ["-e", f"@{variables}", *(["--check"] if check else []), *(str(folder / f"{n}.yml") for n in names)]
        command = self.testbed.command_with_environment(argv, environment)
        return subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280, check=False
        )


@pytest.fixture
def campaign(emulated: Testbed, tmp_path: Path, fake_build: Path) -> Campaign:
    return Campaign(emulated, tmp_path / "work", fake_build)


@pytest.fixture
def campaign_here(state: Path, tmp_path: Path, fake_build: Path) -> Campaign:
    del state
    return Campaign(testbeds.resolve("local"), tmp_path / "work", fake_build)


@pytest.fixture
def campaign_on(request: pytest.FixtureRequest) -> Campaign:
    """Return a campaign on the testbed that the test was asked for."""
    found: Campaign = request.getfixturevalue({"local": "campaign_here", "emulated": "campaign"}[request.param])
    return found


# What playbooks do does not depend on how a host is reached: over SSH it is tried in the long form.
either_testbed = pytest.mark.parametrize(
    "campaign_on", ["local", pytest.param("emulated", marks=pytest.mark.long)], indirect=True
)


def between(name: str, **settings: object) -> Json:
    return make_launch(name, ["h1", "h2"], **settings)


def changed(done: subprocess.CompletedProcess[str]) -> list[int]:
    return [int(count) for count in re.findall(r"\bchanged=(\d+)", done.stdout)]


def gone(campaign: Campaign) -> None:
    """Nothing of the campaign is left, anywhere."""
    deadline = time.monotonic() + 10
    while left := processes(campaign.name, str(campaign.work)):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert not campaign.folders()


def test_a_campaign_over_ssh(campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_hosts = Path.home() / ".ssh/known_hosts"  # ssh asks the list of users where home is, Ansible the variable
    before = known_hosts.read_bytes() if known_hosts.exists() else None
    home = tmp_path / "home"
    home.mkdir()
    # finished by an earlier run whose controller was killed before it had the record
    done = node_folder(campaign.name, "h1") / "done"
    done.mkdir(parents=True)
    (done / "early.json").write_text(json.dumps({"launch": {"launch_id": "early"}, "status": "done"}))
    with monkeypatch.context() as controller:
        controller.setenv("HOME", str(home))
        slow = [between("l1"), make_launch("l2", ["h1", "h1"]), between("l3", mode="crash")]
        for launch in slow:
            launch["settings"]["link.rate"] = "100Mbit"
        outcome = campaign.run(slow, [make_launch("l4", ["h2"])])
    assert outcome.ok, outcome
    assert outcome.launches == 5
    assert outcome.tasks_before_first_launch <= 20
    statuses = {record["launch"]["launch_id"]: record["status"] for record in campaign.records}
    assert statuses == {"l1": "done", "l2": "done", "l3": "failed", "l4": "done", "early": "done"}
    assert [record["launch"]["launch_id"] for record in campaign.records] == ["l1", "l2", "l3", "l4", "early"]
    rates = {record["launch"]["launch_id"]: record.get("link", []) for record in campaign.records}
    assert {host["after"]["rate_bits"] for name in ("l1", "l2", "l3") for host in rates[name]} == {100_000_000}
    assert {host["before"]["rate_bits"] for host in rates["l4"]} == {0}
    kinds = [type(event) for event in campaign.events]
    assert kinds.count(LaunchFinished) == 4
    assert kinds.count(BlockFinished) == 2
    nodes = {event.host: event.node for event in campaign.events if isinstance(event, Ready)}
    assert set(nodes) == {"h1", "h2"}
    node: Json = nodes["h2"] or {}
    assert node["programs"]["never-heard-of"] == {"unknown": "not found"}
    assert node["programs"]["sh"]["file"].startswith("/")
    assert node["host"] == "h2"
    assert node["interfaces"]["data0"]["driver"] == "veth"
    assert not list(home.iterdir())
    assert (known_hosts.read_bytes() if known_hosts.exists() else None) == before
    secret = (campaign.work / "token").read_text().strip()
    assert secret not in (campaign.work / "ansible.log").read_text()
    assert (campaign.work / "token").stat().st_mode & 0o777 == 0o600
    gone(campaign)


def reached(campaign: Campaign) -> str:
    """Return what Ansible said of its first run, but for its checks of the inventory."""
    log = (campaign.work / "ansible.log").read_text()
    return log[log.index("PLAY [Prepare") : log.index("PLAY RECAP")]


@pytest.mark.long  # the next one sees that too
def test_a_host_that_no_launch_uses_is_left_alone(campaign: Campaign) -> None:
    outcome = campaign.run([make_launch("l1", ["h1", "h1"])], [make_launch("l2", ["h1"])])
    assert outcome.ok, outcome
    assert [record["status"] for record in campaign.records] == ["done", "done"]
    assert "h1" in reached(campaign)
    assert "h2" not in reached(campaign)
    assert {event.host for event in campaign.events if isinstance(event, Ready)} == {"h1"}
    gone(campaign)


@pytest.mark.long
def test_a_host_that_an_earlier_run_used_is_cleaned_though_the_rest_does_not_use_it(campaign: Campaign) -> None:
    """As where that run was killed after its last launch there."""
    done = node_folder(campaign.name, "h2") / "done"
    done.mkdir(parents=True)
    (done / "early.json").write_text(json.dumps({"launch": {"launch_id": "early"}, "status": "done"}))
    ansible_files.write_json(campaign.work / ansible_io.TOUCHED, ["h1", "h2"])
    outcome = campaign.run([make_launch("l1", ["h1"])])
    assert outcome.ok, outcome
    assert outcome.clean
    assert [record["launch"]["launch_id"] for record in campaign.records] == ["l1", "early"]
    assert "h1" in reached(campaign)
    assert "h2" not in reached(campaign)
    assert {event.host for event in campaign.events if isinstance(event, Ready)} == {"h1"}
    assert not (campaign.work / ansible_io.TOUCHED).exists()
    gone(campaign)


@pytest.mark.long  # the one in a wrong surrounding sees that too
def test_a_campaign_on_this_machine_alone(campaign_here: Campaign) -> None:
    outcome = campaign_here.run([make_launch("l1", ["localhost", "localhost"]), make_launch("l2", ["localhost"])])
    assert outcome.ok, outcome
    assert [record["status"] for record in campaign_here.records] == ["done", "done"]
    gone(campaign_here)


@pytest.mark.long
def test_a_campaign_in_a_wrong_surrounding(
    campaign_here: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that steers libraries, an odd locale, and a checkout that anybody may write to.

    Ansible's local connection hands on a home. What agents make of variables: test_environment.py.
    """
    shutil.copytree(PLAYBOOKS, tmp_path / "checkout" / "playbooks")
    for folder, _, files in os.walk(tmp_path / "checkout"):
        Path(folder).chmod(0o777)
        for name in files:
            (Path(folder) / name).chmod(0o666)
    monkeypatch.setenv("CADGE_ROOT", str(tmp_path / "checkout"))
    monkeypatch.setenv("LC_ALL", "xx_XX.ISO-8859-1")
    monkeypatch.setenv("LANG", "xx_XX")
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "no_such_callback")
    home, seen = tmp_path / "home", tmp_path / "seen"
    (home / ".openmpi").mkdir(parents=True)
    (home / ".openmpi/mca-params.conf").write_text("btl_vader_single_copy_mechanism = none\n")
    (home / "ucx.conf").write_text("UCX_RNDV_THRESH=0\n")
    seen.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    outcome = campaign_here.run(
        [make_launch("l1", ["localhost", "localhost"], look=seen), make_launch("l2", ["localhost"])]
    )
    assert outcome.ok, outcome
    assert [record["status"] for record in campaign_here.records] == ["done", "done"]
    for found in (json.loads((seen / f"{number}.json").read_text()) for number in (0, 1)):
        assert found["folder"] == found["environment"]["HOME"] != str(home)
        assert (found["home"], found["files"]) == ([], [])
    (node,) = [event.node for event in campaign_here.events if isinstance(event, Ready)]
    assert isinstance(node, dict)
    NodeFacts.from_object(node, source="facts of a node")
    gone(campaign_here)


@either_testbed
def test_roles_converge_and_a_second_time_change_nothing(campaign_on: Campaign) -> None:
    campaign, hosts = campaign_on, [host.name for host in campaign_on.testbed.hosts]
    launch = make_launch("l1", [hosts[0], hosts[-1]])
    blocks = [make_block(campaign.testbed, campaign.name, "b0", [launch])]
    campaign.work.mkdir()
    ansible_io._variables(campaign.testbed, blocks, campaign.work, campaign.build, tune=False)
    first = campaign.playbook("validate", "prepare", "deploy")
    assert first.returncode == 0, first.stdout
    assert sum(changed(first)) > 0
    assert len(campaign.folders()) == len(hosts)
    for folder in campaign.folders():
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "token").stat().st_mode & 0o777 == 0o600
        assert json.loads((folder / "node.json").read_text())["schema"] == "cadge.node/1"
        assert json.loads((folder / "b0.json").read_text())["block_id"] == "b0"
        driver = campaign.build / "bin" / "cadge-driver"
        assert (folder / "build/bin/cadge-driver").read_bytes() == driver.read_bytes()
    second = campaign.playbook("validate", "prepare", "deploy")
    assert second.returncode == 0, second.stdout
    assert not any(changed(second)), second.stdout
    dry = campaign.playbook("site", check=True)
    assert dry.returncode == 0, dry.stdout
    assert len(campaign.folders()) == len(hosts)
    assert campaign.playbook("cleanup").returncode == 0
    gone(campaign)
    if hosts != ["localhost"]:  # there Ansible makes the folder anew, for files of its own
        again = campaign.playbook("cleanup")
        assert again.returncode == 0, again.stdout
        assert not any(changed(again)), again.stdout


def to_tune(campaign: Campaign, folder: Path) -> Path:
    """Give a campaign the variables of a run that tunes its first host; returns a setting, which is 1."""
    plain = folder / "plain"
    plain.write_text("1\n")
    launches = [make_launch("l1", [campaign.testbed.hosts[0].name])]
    campaign.work.mkdir()
    blocks = [make_block(campaign.testbed, campaign.name, "b0", launches)]
    ansible_io._variables(campaign.testbed, blocks, campaign.work, campaign.build, tune=True)
    return plain


@either_testbed
@pytest.mark.long
def test_tuning_is_put_back_also_after_a_kill(campaign_on: Campaign, tmp_path: Path) -> None:
    campaign, setting = campaign_on, tmp_path / "setting"
    setting.write_text("on [off] maybe\n")
    plain = to_tune(campaign, tmp_path)
    extra: Json = {
        "cadge_tune_settings": [{"file": f"{tmp_path}/pla*", "value": "2"}, {"file": "/no/such", "value": "3"}],
        "cadge_tune_become": False,
    }
    first = campaign.playbook("prepare", extra=extra)
    assert first.returncode == 0, first.stdout
    assert plain.read_text().strip() == "2"
    second = campaign.playbook("prepare", extra=extra)
    assert not any(changed(second)), second.stdout
    assert campaign.playbook("restore", extra=extra).returncode == 0
    assert plain.read_text().strip() == "1"
    assert setting.read_text() == "on [off] maybe\n"
    gone(campaign)


@pytest.mark.long
def test_a_resume_that_does_not_tune_puts_back_what_a_killed_run_tuned(campaign_here: Campaign, tmp_path: Path) -> None:
    plain = to_tune(campaign_here, tmp_path)
    ansible_files.write_json(campaign_here.work / ansible_io.TOUCHED, ["localhost"])
    extra: Json = {"cadge_tune_settings": [{"file": str(plain), "value": "2"}], "cadge_tune_become": False}
    assert campaign_here.playbook("prepare", extra=extra).returncode == 0
    assert plain.read_text().strip() == "2"
    campaign_here.run([make_launch("l2", ["localhost"])])
    assert plain.read_text().strip() == "1"
    gone(campaign_here)


@pytest.mark.long
def test_a_text_says_that_a_host_may_not_be_tuned(campaign_here: Campaign, tmp_path: Path) -> None:
    """As it comes from an INI file."""
    plain = to_tune(campaign_here, tmp_path)

    def change(hosts: Json) -> None:
        hosts["localhost"]["cadge_tunable"] = "no"

    with_hosts(campaign_here, tmp_path, change)
    extra: Json = {"cadge_tune_settings": [{"file": str(plain), "value": "2"}], "cadge_tune_become": False}
    done = campaign_here.playbook("prepare", extra=extra)
    assert done.returncode == 0, done.stdout
    assert plain.read_text() == "1\n"
    assert campaign_here.playbook("cleanup", extra=extra).returncode == 0


@pytest.mark.long
def test_stop_ends_in_order_with_what_was_finished(campaign: Campaign) -> None:
    def stop_at_second(event: Event) -> None:
        if isinstance(event, LaunchStarted) and event.number == 2:
            campaign.stop.set()

    outcome = campaign.run([between(f"l{n}", sleep_ms=100) for n in range(1, 50)], on_event=stop_at_second)
    assert outcome.exit_code == 6
    assert not outcome.problems
    assert [record["launch"]["launch_id"] for record in campaign.records] == ["l1", "l2"]
    gone(campaign)


@pytest.mark.long
def test_stop_reaches_the_blocks_that_begin_later(campaign_here: Campaign) -> None:
    def stop_at_second(event: Event) -> None:
        if isinstance(event, LaunchStarted) and event.number == 2:
            campaign_here.stop.set()

    blocks = [[make_launch(f"{block}{n}", ["localhost"], sleep_ms=100) for n in range(30)] for block in "abcd"]
    outcome = campaign_here.run(*blocks, on_event=stop_at_second)
    assert outcome.exit_code == 6
    # An agent is told as soon as it has come; until then it may begin a launch.
    assert len(campaign_here.records) <= 2 + 2 * 3, [record["launch"]["launch_id"] for record in campaign_here.records]
    gone(campaign_here)


@pytest.mark.long
def test_a_run_with_nothing_to_make_cleans_the_hosts(campaign: Campaign) -> None:
    assert campaign.run([between("l1")]).ok
    left = [node_folder(campaign.name, host) for host in ("h1", "h2")]  # as after a kill behind the last launch
    for folder in left:
        folder.mkdir(parents=True)
    assert campaign.run().ok
    gone(campaign)


@pytest.mark.long
def test_stop_before_the_first_launch(campaign: Campaign) -> None:
    def stop_now(event: Event) -> None:
        if isinstance(event, Stage) and event.name == "Make the folder":
            campaign.stop.set()

    outcome = campaign.run([between("l1")], on_event=stop_now)
    assert outcome.exit_code == 6
    assert campaign.records == []
    gone(campaign)


# ---------------------------------------------------------------------------------------------------------- bad input


def with_hosts(campaign: Campaign, tmp_path: Path, change: Callable[[Json], None], **fields: object) -> Campaign:
    """The campaign on a testbed whose inventory was changed."""
    listing = json.loads(campaign.testbed.inventory_path.read_text())
    change(listing["cadge"]["hosts"])
    path = tmp_path / "inventory.json"
    path.write_text(json.dumps(listing))
    campaign.testbed = replace(campaign.testbed, inventory_path=path, **fields)  # type: ignore[arg-type]
    return campaign


EVIL = "n1;touch x;"


def with_evil_name(campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the campaign's one host a name for a shell, as an inventory that changed after it was read; returns where
    its playbooks are, the current folder of what Ansible starts here."""
    shutil.copytree(PLAYBOOKS, tmp_path / "checkout" / "playbooks")
    monkeypatch.setenv("CADGE_ROOT", str(tmp_path / "checkout"))
    with_hosts(campaign, tmp_path, lambda hosts: hosts.update({EVIL: hosts.pop("localhost")}))
    return tmp_path / "checkout" / "playbooks"


@pytest.mark.long
def test_a_host_with_a_name_for_a_shell_is_not_reached_to_clean_it_either(
    campaign_here: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_evil_name(campaign_here, tmp_path, monkeypatch)
    outcome = campaign_here.run([make_launch("l1", ["localhost"])])
    assert not list(folder.rglob("x"))
    assert (outcome.exit_code, outcome.clean) == (3, False)
    assert outcome.problems == (
        f"{EVIL}: Campaign and host names may hold only letters, digits, dot, dash and underscore.",
    )
    assert "Look for launches" not in (campaign_here.work / "ansible.log").read_text()


@pytest.mark.long
def test_a_name_that_reaches_a_shell_in_a_path_is_quoted(
    campaign_here: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [make_block(campaign_here.testbed, campaign_here.name, "b0", [make_launch("l1", ["localhost"])])]
    campaign_here.work.mkdir()
    ansible_io._variables(campaign_here.testbed, blocks, campaign_here.work, campaign_here.build, tune=False)
    folder = with_evil_name(campaign_here, tmp_path, monkeypatch)
    made = node_folder(campaign_here.name, EVIL)
    try:
        done = campaign_here.playbook("prepare", "deploy", folder=folder)
        assert not list(folder.rglob("x"))
        assert done.returncode == 0, done.stdout
        assert (made / "node.json").exists()
    finally:
        shutil.rmtree(made, ignore_errors=True)


@pytest.mark.long
def test_a_build_that_is_not_at_a_plain_path(campaign_here: Campaign, tmp_path: Path) -> None:
    def change(hosts: Json) -> None:
        hosts["localhost"]["cadge_build_path"] = "/a\n"

    outcome = with_hosts(campaign_here, tmp_path, change).run([make_launch("l1", ["localhost"])])
    assert outcome.exit_code == 3
    assert outcome.problems[0].startswith("localhost: The variable cadge_build_path must be an absolute path")


def test_the_python_that_an_inventory_names_is_the_one(tmp_path: Path) -> None:
    """By path or by name; a word of Ansible's own for "look for one" names none."""
    stated = {"a": "python3.11", "b": "/opt/python", "c": None, "d": "auto_silent"}
    hosts = {name: {"ansible_python_interpreter": one} if one else {} for name, one in stated.items()}
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"cadge": {"hosts": hosts}}))
    argv = [tool("ansible"), "cadge", "-i", str(inventory), "--playbook-dir", str(PLAYBOOKS)]
    done = subprocess.run(
        [*argv, "-e", "cadge_campaign=c", "-m", "ansible.builtin.debug", "-a", "msg={{ cadge_python }}"],
        env={**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = dict(re.findall(r'^(\w) \| SUCCESS => \{\s+"msg": "([^"]+)"', done.stdout, re.MULTILINE))
    assert found == {"a": "python3.11", "b": "/opt/python", "c": "python3", "d": "python3"}


@pytest.mark.long
def test_a_host_that_cannot_be_reached(campaign: Campaign, tmp_path: Path) -> None:
    def change(hosts: Json) -> None:
        hosts["h2"]["ansible_host"] = "198.18.0.99"

    outcome = with_hosts(campaign, tmp_path, change).run([between("l1")])
    assert outcome.exit_code == 4
    assert not outcome.clean
    assert any("h2 cannot be reached" in problem for problem in outcome.problems), outcome.problems
    assert campaign.records == []
    gone(campaign)
    outcome = campaign.run()  # only cleans
    assert (outcome.exit_code, outcome.clean) == (4, False)


@pytest.mark.long
def test_a_host_with_another_key(campaign: Campaign, tmp_path: Path) -> None:
    assert campaign.testbed.ssh_config
    text = campaign.testbed.ssh_config.read_text()
    known = (campaign.testbed.ssh_config.parent / "known_hosts").read_text().splitlines()
    swapped = [f"{a.split()[0]} {b.split(' ', 1)[1]}" for a, b in zip(known, reversed(known), strict=True)]
    (tmp_path / "known_hosts").write_text("\n".join(swapped) + "\n")
    config = tmp_path / "ssh_config"
    config.write_text(re.sub(r"UserKnownHostsFile .*", f"UserKnownHostsFile {tmp_path}/known_hosts", text))

    def change(hosts: Json) -> None:
        for host in hosts.values():
            host["ansible_ssh_common_args"] = f"-F {config}"

    outcome = with_hosts(campaign, tmp_path, change).run([between("l1")])
    assert outcome.exit_code == 4
    assert any("host key verification failed" in p and "ssh h1 true" in p for p in outcome.problems), outcome.problems


@pytest.mark.long
def test_a_host_without_the_build_and_one_with_a_build_for_another_machine(campaign: Campaign, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "cadge-driver").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf3\x00" + bytes(44))
    (other / "bin" / "cadge-driver").chmod(0o755)

    def change(hosts: Json) -> None:
        hosts["h1"]["cadge_build_path"] = str(other)
        hosts["h2"]["cadge_build_path"] = "/no/such/build"

    outcome = with_hosts(campaign, tmp_path, change).run([between("l1")])
    assert outcome.exit_code == 3
    assert any("another kind of machine than h1" in problem for problem in outcome.problems), outcome.problems
    assert any("h2 has no build: there is no /no/such/build" in p for p in outcome.problems), outcome.problems
    gone(campaign)


@pytest.mark.long
def test_versions_that_differ_between_hosts(campaign: Campaign, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(campaign.build, other)
    driver = other / "bin" / "cadge-driver"
    driver.write_text(driver.read_text().replace('"revision": "fake"', '"revision": "older"'))

    def change(hosts: Json) -> None:
        hosts["h2"]["cadge_build_path"] = str(other)

    outcome = with_hosts(campaign, tmp_path, change).run([between("l1")])
    assert outcome.exit_code == 3
    assert any("The versions differ between hosts" in problem for problem in outcome.problems), outcome.problems
    gone(campaign)


def test_no_build_at_all(campaign: Campaign, tmp_path: Path) -> None:
    campaign.build = tmp_path
    with pytest.raises(UnfitError, match="there is no build"):
        campaign.run([between("l1")])


# --------------------------------------------------------------------------------------------------------- documents


def roles() -> list[Path]:
    return sorted((PLAYBOOKS / "roles").iterdir())


@pytest.mark.parametrize("role", roles(), ids=lambda role: role.name)
def test_a_roles_readme_names_its_options(role: Path) -> None:
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    text = (role / "README.md").read_text()
    assert text.startswith(f"# {role.name}\n")
    for entry in specs.values():
        assert entry["short_description"] in text
        for option, spec in entry["options"].items():
            assert f"| `{option}` |" in text
            assert spec["description"] in text
