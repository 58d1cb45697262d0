# SPDX-License-Identifier: BSD-3-Clause
"""What an inventory may say: which values pass, how the others are refused, and that nothing is started before."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cadge_cli.commands import run as commands_run
from cadge_harness.paths import Checkout
from cadge_harness.run import ansible_io
from cadge_harness.run.lease import Peer
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.inventory_rules import KNOWN, HostVariables, for_example, read_host
from cadge_results.formats.event import Event, Problem, Ready, TaskFailed

from .conftest import Answer, FakeRunner, make_testbed

pytestmark = pytest.mark.spare

Json = dict[str, Any]
Cadge = Callable[..., Answer]
GOOD: Json = {"ansible_host": "10.0.0.1", "cadge_device": "ib0", "cadge_address": "10.1.0.1"}
SHELL = set(" \t\r\n;&|<>()$`\\\"'*?[]#~=%!{}^:,/@")
"""What separates, ends or expands words of a shell, members of lists, parts of paths and of addresses."""

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


def refusal(name: str = "n1", **change: object) -> str:
    """Read a host that has to be refused; returns the sentence."""
    wrong = read_host(name, {**GOOD, **change})
    assert isinstance(wrong, list), wrong
    assert len(wrong) == 1
    assert wrong[0].isprintable()
    assert len(wrong[0]) < 400
    return wrong[0]


# ------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    "name", ["n1", "N-1", "node_1.rack-2.example.org", "1st", "a" * 63, ".".join(["a" * 49] * 4), "10.0.0.7", "n.0a"]
)
def test_names_of_hosts(name: str) -> None:
    for variable in ("ansible_host", "cadge_management_address"):
        host = read_host(name, {**GOOD, variable: name})
        assert isinstance(host, HostVariables), host
        assert (host.inventory_hostname, host.management_address) == (name, name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "../n1", "n1;touch x", "n1 n2", "n1\n", "\nn1", "n1,n2", "n1:22", "-oProxyCommand=x", "$(x)",
     "n1\x1b[31m", "nö", "n1\u202e", "n..1", ".n1", "n1.", "n-.a", "_n1", "n1*", "{{ x }}", "root@n1", "fe80::1",
     "a" * 64, "n" * 300, ".".join(["a" * 49] * 5), "42", "127.1", "10.0.0.256", "010.0.0.1", "0x7f000001",
     "0.1.2.3", "255.255.255.255", "224.0.0.1", "\ud800"],
)  # fmt: skip
def test_names_that_are_refused(name: str) -> None:
    said = refusal(name)
    assert "its name must be a host name (at most 200 characters: letters, digits, '-' and '_' in parts" in said
    assert said.startswith("host ")
    assert "cadge_management_address must be an IP address of one host or a host name" in refusal(
        cadge_management_address=name
    )
    assert "ansible_host must be a host name" in refusal(ansible_host=name, cadge_management_address="10.0.0.1")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("cadge_device", name) for name in ("ib0", "enp3s0f0np0", "bond0.100", "br-lan", "_x", "a" * 15)),
        *(("cadge_address", text) for text in ("1.0.0.1", "10.1.0.1", "127.0.0.1", "169.254.1.1", "fd00::1")),
        *(("cadge_raw_device", name) for name in ("", "eth9")),
        *(("cadge_management_address", text) for text in ("10.0.0.1", "n1.lab", "fd00::1", "2001:db8::2", "::1")),
        *(("cadge_cpus", cpus) for cpus in ([], [0], [8191, 3], list(range(8192)))),
        ("cadge_port_first", 1024),
        ("cadge_port_last", 65535),
        *(("cadge_build_path", path) for path in ("/opt/cadge", "/opt/cadge/build-1.0_a,b+c@d=e/", "/")),
        *(("cadge_ld_library_path", path) for path in ("", "/opt/ucx/lib", "/opt/ucx/lib:/opt/ompi-5.0/lib64")),
        *(("cadge_opal_prefix", path) for path in ("", "/opt/ompi-5.0")),
        *(("cadge_tunable", given) for given in (True, False, "yes", "no", "True", "false")),
    ],
)
def test_values_that_pass(variable: str, value: object) -> None:
    assert isinstance(read_host("n1", {**GOOD, variable: value}), HostVariables)


@pytest.mark.parametrize(
    ("variable", "said", "values"),
    [
        ("cadge_device", "must be the name of a network device (at most 15 letters,",
         ["", ".", "..", "all", "default", "a" * 16, "e/0", "eth0:1", "e 0", "eth0\n", "e0,e1", "-e", "e;x", "é", 1]),
        ("cadge_raw_device", "must be the name of a network device (at most 15 ", [" ", "e;x", "a" * 16, False]),
        ("cadge_address", "must be an IPv4 or IPv6 address of one host, without leading zeros",
         ["", "ten", "n1", "0.1.2.3", "255.255.255.255", "224.0.0.1", "240.0.0.1", "10.1.0.01", "10.1.1",
          "10.1.0.1/24", "10.1.0.1\n", " 10.1.0.1", "fe80::1", "ff02::1", "::",
          "::ffff:10.1.0.1", "\u0661\u0660.1.0.1", 167837697, ["10.1.0.1"]]),
        ("cadge_cpus", "must be a list of processor numbers, each once, from 0 to 8191",
         ["0-3", 3, [-1], [8192], [1, 1], [True, False], [True], ["0"], [0.0], [[0]], [None], {"0": 1}]),
        ("cadge_port_first", "must be a port within 1024-65535", [80, 65536, -1, True, "http", "2000", 2e3, [], ""]),
        ("cadge_port_last", "must be a port within 1024-65535", [0, 1 << 40, False]),
        ("cadge_build_path", "must be an absolute path out of letters, digits and any of",
         ["", "build", "./build", "~/build", "/a b", "/a\n", "/a;x", "/$HOME", "/{{ x }}", "/a:b", "/é", ["/a"],
          "/" + "a" * 1000]),
        ("cadge_ld_library_path", "must be an absolute path out of letters, digits and any of",
         ["lib", ".", "/a:", ":/a", "/a::/b", "/a:b", "/a b", "/a;/b", "/$ORIGIN", "/a\n", ["/a"], 1]),
        ("cadge_opal_prefix", "must be an absolute path out of letters, digits and any of",
         ["opt", "/a:/b", "/a b", "/$HOME", "/a\n", False]),
        ("cadge_tunable", "must be true or false", ["maybe", "", 1, 0, [True]]),
        ("ansible_host", "must be a host name (", ["fe80::1%eth0;x", "fe80::1", "ff02::1", "::", "[::1]", "::1::", 1]),
        ("ansible_ssh_host", "must be a host name (", ["-oProxyCommand=x"]),
    ],
)  # fmt: skip
def test_values_that_are_refused(variable: str, said: str, values: list[object]) -> None:
    for value in [*values, None]:
        sentence = refusal(**{variable: value})
        assert sentence.startswith(f"host n1: {variable} {said}"), sentence
        assert ", not " in sentence
        assert variable in example(sentence)


def example(sentence: str) -> Json:
    """Return the variables that a refusal has for an example, read as an inventory's YAML is."""
    found: Json = yaml.safe_load(f"{{{sentence.rpartition('; for example: ')[2]}}}")
    return found


@pytest.mark.parametrize("variable", KNOWN)
def test_an_example_can_be_pasted(variable: str) -> None:
    text = for_example("wrong", variable)
    if variable == "inventory_hostname":
        name = text.removeprefix("wrong; for example: ")
        assert isinstance(read_host(name, GOOD), HostVariables)
        return
    pasted = example(text)
    assert list(pasted) == [variable]
    assert isinstance(read_host("n1", {**GOOD, **pasted}), HostVariables)
    assert pasted[variable] != ""


def test_refusals_that_say_more() -> None:
    assert refusal(cadge_device=None).endswith(
        "neither of the last two first), not None; for example: cadge_device: eth0"
    )
    assert (
        refusal(cadge_device="{{ x }}")
        .partition("; for example")[0]
        .endswith("not '{{ x }}'; Cadge fills in no templates")
    )
    assert "x...; for" in refusal(cadge_device="x" * 10_000)
    lacks = read_host("n1", {"cadge_address": "10.1.0.1"})
    assert lacks == ["host n1 lacks the variable cadge_device in the inventory; for example: cadge_device: eth0"]
    unknown = r"host n1: there is no variable 'cadge_\x1b[2Jx'; "
    assert refusal(**{"cadge_\x1b[2Jx": 1}).startswith(unknown)
    several = read_host("n1", {**GOOD, "cadge_device": "", "cadge_cpus": [-1, -2, -3]})
    assert isinstance(several, list)
    assert len(several) == 2
    own = refusal(cadge_raw_device="ib0")
    assert own.startswith("host n1: cadge_raw_device must be a link of its own, not cadge_device (ib0); for example:")
    assert isinstance(read_host("n1", {**GOOD, **example(own)}), HostVariables)
    narrow = refusal(cadge_port_first=20000, cadge_port_last=20030)
    assert "must span at least 32 ports, not 20000-20030; for example: " in narrow
    assert isinstance(read_host("n1", {**GOOD, **example(narrow)}), HostVariables)
    near = refusal(cadge_addres="10.1.0.1")
    assert near.endswith('did you mean cadge_address? For example: cadge_address: "10.1.0.1"')
    assert isinstance(
        read_host("n1", {**GOOD, "ansible_host": "fd00::1", "cadge_management_address": "n1"}), HostVariables
    )


def test_what_is_ansibles_is_left_to_ansible() -> None:
    variables = {**GOOD, "ansible_user": "{{ me }}", "ansible_python_interpreter": "{{ it }}", "rack": [1], "b\n": "$"}
    assert isinstance(read_host("n1", variables), HostVariables)


LETTERS = st.one_of(
    st.sampled_from("aZ09._-"), st.sampled_from(sorted(SHELL)), st.characters(exclude_categories=()), st.just("\x1b")
)
TEXTS = st.one_of(st.from_regex(r"[a-z0-9_./-]{0,20}"), st.text(LETTERS, max_size=30), st.text(LETTERS, min_size=200))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
TEXT_VARIABLES = {
    "inventory_hostname": SHELL,
    "ansible_host": SHELL - {":"},
    "ansible_ssh_host": SHELL - {":"},
    "cadge_management_address": SHELL - {":"},
    "cadge_device": SHELL,
    "cadge_raw_device": SHELL,
    "cadge_address": SHELL,
    "cadge_build_path": SHELL - set("/,@="),
    "cadge_ld_library_path": SHELL - set("/,@=:"),
    "cadge_opal_prefix": SHELL - set("/,@="),
}


@given(st.sampled_from(sorted(TEXT_VARIABLES)), TEXTS)
def test_no_text_that_passes_means_anything_elsewhere(variable: str, text: str) -> None:
    changed = {**GOOD, "cadge_management_address": "10.0.0.1", variable: text}
    host = read_host(str(changed.pop("inventory_hostname", "n1")), changed)
    if isinstance(host, list):
        assert all(sentence.isprintable() and len(sentence) < 400 for sentence in host)
        return
    assert getattr(host, variable) == text
    assert text.isascii()
    assert text.isprintable()
    assert not set(text) & TEXT_VARIABLES[variable]
    assert not text.startswith(("-", "."))
    assert len(f"20261121T013042Z-1f3a9c2e-{host.inventory_hostname}.json.part") <= 255


@given(st.sampled_from([*KNOWN[1:], "cadge_"]), TEXTS, VALUES)
def test_whatever_stands_in_an_inventory_is_read_or_refused_in_a_line(variable: str, rest: str, value: object) -> None:
    found = read_host("n1", {**GOOD, variable + (rest if variable == "cadge_" else ""): value})
    if isinstance(found, list):
        assert found
        assert all(sentence.isprintable() and len(sentence) < 400 for sentence in found)


# ---------------------------------------------------------------------------------------------------------- inventories


def inventory(folder: Path, file: str = "lab.yml", **hosts: Json) -> Path:
    path = folder / file
    path.write_text(json.dumps({"cadge": {"hosts": hosts}}))
    return path


def test_one_address_of_ipv6_in_two_forms_is_one(tmp_path: Path) -> None:
    second = {**GOOD, "ansible_host": "10.0.0.2", "cadge_address": "fd00:0:0::1"}
    path = inventory(tmp_path, n1={**GOOD, "cadge_address": "fd00::1"}, n2=second)
    with pytest.raises(Exception, match="hosts n1 and n2 have the same cadge_address: fd00:0:0::1"):
        testbeds.resolve("auto", path)


@pytest.mark.parametrize(
    ("names", "change", "said"),
    [
        (("n1", "N1"), {}, "hosts n1 and N1 have the same name, but for capital letters: N1"),
        (("n1", "n2"), {"cadge_management_address": "Head"}, "n1 and n2 have the same cadge_management_address: Head"),
        (("n1", "n2"), {"cadge_address": "127.0.0.2"}, "host n2: cadge_address must be one that the other hosts reach"),
        (("n1", "n2"), {"ansible_host": "127.0.0.1"}, "(else ansible_host, else its name) must be one that the other"),
        (("n1", "n2"), {"cadge_management_address": "::1"}, "must be one that the other hosts reach, not ::1"),
        (("n1", "n2"), {"cadge_address": "fd00::1"}, "must have cadge_address all of IPv4 or all of IPv6"),
        (("n1", "localhost"), {}, "host localhost: its name must be one that the other hosts reach, not localhost"),
        (("n1", "n2"), {"cadge_port_first": 20000, "cadge_port_last": 20100}, "the hosts of group cadge must agree on"),
    ],
)  # fmt: skip
@pytest.mark.first(2)
def test_hosts_that_do_not_go_together(tmp_path: Path, names: tuple[str, str], change: Json, said: str) -> None:
    first = {**GOOD, "cadge_management_address": "head"} if "cadge_management_address" in change else GOOD
    second = {**GOOD, "ansible_host": "10.0.0.2", "cadge_address": "10.1.0.2", **change}
    path = inventory(tmp_path, **dict(zip(names, (first, second), strict=True)))
    with pytest.raises(Exception, match=re.escape(said)):
        testbeds.resolve("auto", path)


def test_many_refusals_are_cut_short(tmp_path: Path) -> None:
    hosts = {f"n{number}": {**GOOD, "cadge_device": ""} for number in range(9)}
    with pytest.raises(Exception, match=r"not ''; for example: cadge_device: eth0\nand 4 more$"):
        testbeds.resolve("auto", inventory(tmp_path, **hosts))


def test_one_host_may_be_this_machine(tmp_path: Path) -> None:
    alone = {"cadge_device": "lo", "cadge_address": "127.0.0.1", "ansible_connection": "local"}
    assert testbeds.resolve("auto", inventory(tmp_path, localhost=alone)).hosts[0].address == "127.0.0.1"


def test_an_ini_file(tmp_path: Path) -> None:
    path = tmp_path / "lab.ini"
    path.write_text(
        "[cadge]\nn1 cadge_device=ib0 cadge_address=10.1.0.1 cadge_cpus=[2,3]\n"
        "[cadge:vars]\ncadge_port_first=20000\ncadge_port_last=20099\ncadge_tunable=no\n"
    )
    found = testbeds.resolve("auto", path)
    assert (found.ports, found.hosts[0].cpus) == ((20000, 20099), (2, 3))


@pytest.mark.parametrize("file", ["\x1b[31mlab.yml", "lab\n.yml", "$HOME.yml", "lab\udcff.yml"])
def test_file_names_that_are_refused(tmp_path: Path, file: str) -> None:
    with pytest.raises(Exception, match="must be printable and without") as refused:
        testbeds.resolve("auto", inventory(tmp_path, file, n1=GOOD))
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("file", ["\x1b[31mnone.yml", "n" * 300, "loop.yml"])
def test_files_that_are_not_there(tmp_path: Path, file: str) -> None:
    (tmp_path / "loop.yml").symlink_to("loop.yml")
    with pytest.raises(Exception, match="there is no inventory at") as refused:
        testbeds.resolve("auto", tmp_path / file)
    assert str(refused.value).isprintable()


def test_a_linked_inventory_has_the_neighbours_that_the_playbooks_see(tmp_path: Path) -> None:
    for folder, device in (("real", "ib0"), ("linked", "eth0")):
        (tmp_path / folder / "group_vars").mkdir(parents=True)
        (tmp_path / folder / "group_vars/cadge.json").write_text(json.dumps({"cadge_device": device}))
    path = inventory(tmp_path / "real", n1={"cadge_address": "10.1.0.1"})
    (tmp_path / "linked/mine.yml").symlink_to(path)
    found = testbeds.resolve("auto", tmp_path / "linked/mine.yml")
    assert (found.name, found.inventory_path, found.hosts[0].device) == ("mine", path, "ib0")


# ------------------------------------------------------------------------------------------------------------ commands


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[str]]:
    """Programs that were started, as this process sees it, and recorders that stand in the place of ssh."""
    seen: list[str] = []
    folder, log = tmp_path / "recorders", tmp_path / "recorded"
    folder.mkdir()
    for name in ("ssh", "sshpass", "scp", "sftp"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >>{log}\nexit 255\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    real = subprocess.Popen.__init__

    def record(self: subprocess.Popen[str], args: list[str], **named: Any) -> None:  # noqa: ANN401 - of Popen
        seen.append(Path(args[0]).name)
        real(self, args, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", record)
    return lambda: seen + (log.read_text().split() if log.exists() else [])


@pytest.fixture
def whole(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Checkout:
    """A checkout with its own playbooks, a home and a state of its own, and the current folder in it."""
    shutil.copytree(PLAYBOOKS, checkout.root / "playbooks")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CADGE_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return checkout


@pytest.mark.parametrize(
    ("command", "connection"),
    [("plan", "ssh"), ("run", "ssh"), ("run", "local"), ("resume", "ssh"), ("restore", "ssh"), ("restore", "local")],
)
@pytest.mark.first(1)
def test_a_name_for_a_shell_is_refused_before_anything_is_started(
    command: str,
    connection: str,
    whole: Checkout,
    cadge: Cadge,
    started: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    words, verb = ["--sweep", "tiny"], (["testbed", "restore"] if command == "restore" else [command])
    if command in ("resume", "restore"):
        words = ["last"]
        with monkeypatch.context() as fake:
            fake.setattr(commands_run, "AnsibleRunner", lambda *_args, **_named: FakeRunner(stop_after=0))
            fake.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed())
            assert cadge("run", "--sweep", "tiny", "--no-report").code == 6
    before = len(started())
    hosts = {
        name: {**GOOD, "ansible_host": f"10.0.0.{n}", "cadge_address": f"10.1.0.{n}", "ansible_connection": connection}
        for n, name in enumerate(("n1;touch x;", "n2"), 1)
    }
    answer = cadge(*verb, *words, "--inventory", str(inventory(tmp_path, **hosts)))
    assert not [*tmp_path.rglob("x"), *Path.home().rglob("x")]
    assert started()[before:] == ["ansible-inventory"]
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("cadge: host 'n1;touch x;': its name must be a host name (at most 200 characters")
    assert len(list(whole.campaigns.glob("*"))) == (command in ("resume", "restore"))


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_hands_no_value_to_a_shell(tmp_path: Path) -> None:
    argv = ["make", "-n", "-C", str(PLAYBOOKS.parent), "sweep"]
    argv += ["INVENTORY=a;touch x", "LAYERS=`touch x`", "TESTBED=;touch x"]
    said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "touch x" not in said
    assert '--inventory "$INVENTORY"' in said


# ------------------------------------------------------------------------------------------------ what comes from nodes


def test_what_a_node_says_is_printable_and_names_no_other_file(tmp_path: Path) -> None:
    told: list[Event] = []
    run = ansible_io._Run(make_testbed(), tmp_path, told.append, lambda _record: None)
    ready = Ready(host="../../n2", leader=False, todo=0, agent_version="2", node={"host": "../../n2", "kernel": 1})
    with socket.socket() as connection:
        peer = Peer(connection, host="n1", block_id="b0")
        run.event(peer, ready)
        run.event(peer, Problem(host="../../n2", reason="\x1b[2Jgone\n"))
    assert told == [
        ready.model_copy(update={"host": "n1", "node": {"host": "n1", "kernel": 1}}),
        Problem(host="n1", reason=r"\x1b[2Jgone\n"),
    ]


@pytest.mark.parametrize(
    ("late_s", "said"),
    [(3600, "the clock of n1 is 3600 s behind this machine's"), (-3600, "3600 s ahead of this"), (3, ""), (None, "")],
)
def test_a_clock_that_is_an_hour_off_is_named(tmp_path: Path, late_s: int | None, said: str) -> None:
    told: list[Event] = []
    run = ansible_io._Run(make_testbed(), tmp_path, told.append, lambda _record: None)
    there_ns = 0 if late_s is None else time.time_ns() - late_s * 10**9
    with socket.socket() as connection:
        ready = Ready(host="n1", leader=False, todo=0, agent_version="2", realtime_ns=there_ns)
        run.event(Peer(connection, host="n1", block_id="b0"), ready)
    found = [one.reason for one in told if isinstance(one, Problem)]
    assert [said in reason for reason in found] == ([True] if said else [])


def test_a_command_to_try_by_hand_is_quoted() -> None:
    for text in ("Permission denied", "Host key verification failed"):
        said = ansible_io.sentence(TaskFailed(event="unreachable", host="n1;touch x", message=text))
        assert said.endswith("Check once by hand: ssh 'n1;touch x' true")


def test_the_page_of_clusters_names_known_variables_and_commands() -> None:
    """All variables are explained in `cadge testbed example` (test_inventory_example.py)."""
    text = (PLAYBOOKS / "CLUSTER.md").read_text()
    assert set(re.findall(r"\bcadge_\w+", text)) <= set(KNOWN)
    for command in ("testbed example", "doctor --inventory hosts.yml", "plan --inventory hosts.yml"):
        assert f"\n.venv/bin/cadge {command}" in text


def test_roles_take_no_variable_of_an_inventory_that_is_not_checked() -> None:
    """Whatever a role takes is the controller's, or a host's and then has a rule."""
    taken = {
        option
        for specs in PLAYBOOKS.glob("roles/*/meta/argument_specs.yml")
        for entry in yaml.safe_load(specs.read_text())["argument_specs"].values()
        for option in entry["options"]
        if specs.parts[-3] not in ("cadge_publish", "cadge_setup", "cadge_tune")  # theirs are no host's of a campaign
    }
    ours = {
        "cadge_archive", "cadge_archive_marker", "cadge_block_current", "cadge_build", "cadge_campaign",
        "cadge_fetch_folder", "cadge_folder", "cadge_lease_socket", "cadge_link", "cadge_link_become",
        "cadge_link_bits", "cadge_programs", "cadge_python", "cadge_tune",
    }  # fmt: skip
    assert taken - ours <= set(KNOWN)
    assert not ours & set(KNOWN)
