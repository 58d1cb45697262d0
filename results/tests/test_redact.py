# SPDX-License-Identifier: BSD-3-Clause
"""What is published names nobody, keeps every number, and is the same when it is redacted again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadge_results import Campaign, CampaignWriter, LaunchRecord, LayerFile, NodeFacts, Plan
from cadge_results.errors import FormatError
from cadge_results.publish.published import Rules, copy, original_sha256
from cadge_results.publish.redact import CampaignTexts, Names, Redactor, names_of, texts
from cadge_results.store.verify import verify

NAMES = Names(hosts=("gpu-a", "8", "node"), users=("alice", "1"), words=frozenset({"node"}))
TEXTS = (
    ("ssh alice@gpu-a failed", "ssh u1@n1 failed"),
    ("bind 10.1.2.3:18600, then fe80::1ff:fe23:4567:890a", "bind 192.0.2.1:18600, then 2001:db8::1"),
    ("link 0c:42:a1:03:00:65 guid 0c42:a103:0065:1234", "link 00:00:5e:00:53:01 guid 0000:0000:0000:0001"),
    ("in /home/bob/x and /Users/bob", "in /home/u1/x and /Users/u1"),
    ("JobId=123456 in /tmp/slurm.99999/x", "JobId=j1 in /tmp/slurm.j2/x"),
    ("ask a.b@lab.ac.uk or nobody@example.org", "ask m1@example.org or nobody@example.org"),
    ("/srv/build/layers/mpi-p2p@openmpi-5.0.11.so", "/srv/build/layers/mpi-p2p@openmpi-5.0.11.so"),
    ("8 B on node 1: 8 of 8", "8 B on node 1: 8 of 8"),
    ("12:34:56 libx.so.1.14.44.0 std::string 127.0.0.1 ::1 0.0.0.0 0000:3b:00.0", None),
    ("gpu-ab gpu_a xgpu-a alices", None),
    ("gpu-a.lab.example.edu:22 gpu-a.local gpu-a.json", "n1:22 n1 n1.json"),
    ("BOOTIF=01-0c-42-a1-03-00-65 ro", "BOOTIF=00:00:5e:00:53:01 ro"),
    ("80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:65:12:34 up", "00:00:5e:00:53:01 up"),
    (
        "port 0x0c42a10300651234, node_guid: 0c42a10300651234",
        "port 0000:0000:0000:0001, node_guid: 0000:0000:0000:0002",
    ),
    ("gid fe80:0000:0000:0000:0c42:a103:0065:1234", "gid 2001:db8::1"),
    ("mask 0x0000000000400000 0xffffffffffffffff at 3f2a9c0d11e45b67", None),
    ("on enx0c42a1030065 and wlx0c42a1030066, not enp1s0", "on enx00005e005301 and wlx00005e005302, not enp1s0"),
    ("SLURM_JOB_ID=123456 PBS_JOBID=77123.pbs-1 LSB_JOBID=4711", "SLURM_JOB_ID=j1 PBS_JOBID=j2 LSB_JOBID=j3"),
    ("PBS_JOBID=77123[4].pbs-1.lab.edu in job 4711", "PBS_JOBID=j1 in job j2"),
    (
        "/scratch/bob/x /gpfs/users/carol/y /home2/dave /scratch/users/eve/",
        "/scratch/u1/x /gpfs/users/u2/y /home2/u3 /scratch/users/u4/",
    ),
    ("SUDO_USER=bob LOGNAME=carol", "SUDO_USER=u1 LOGNAME=u2"),
    ("10.1.2.3-10.1.2.9 and 10.1.2.5-20", "192.0.2.1-192.0.2.2 and 192.0.2.3-20"),
    ("libx 1.14.44.0-3 and 8.8.8.8-x", None),
    ("ip-10-1-2-3 ip-10-1-2-4.eu-central-1.compute.internal", "ip-192-0-2-1 ip-192-0-2-2"),
    ("2026-11-25T19:32:11Z 99.999 % [1.02, 1.08] 1e-05", None),
)


@pytest.mark.parametrize(("text", "redacted"), TEXTS)
def test_names_go_and_the_rest_stays(text: str, redacted: str | None) -> None:
    assert Redactor(NAMES).text(text) == (text if redacted is None else redacted)


def test_a_host_is_replaced_where_a_host_must_stand_even_if_it_is_a_word_or_a_number() -> None:
    redactor = Redactor(NAMES)
    found = redactor.value({"host": "node", "hosts": ["8", {"name": "node", "address": "10.0.0.1"}], "text": "node 8"})
    assert found == {"host": "n3", "hosts": ["n2", {"name": "n3", "address": "192.0.2.1"}], "text": "node 8"}
    assert redactor.untold == ("1", "8", "node")


def test_hosts_called_as_their_pseudonyms_change_places_once() -> None:
    first = Redactor(Names(hosts=("n2", "n1", "n12")))
    assert first.text("n1 n2 n12") == "n2 n1 n3"
    assert Redactor(Names(hosts=("n1", "n2", "n3"))).text("n1 n2 n3") == "n1 n2 n3"


def test_a_version_of_four_numbers_is_no_address() -> None:
    gathered = CampaignTexts()
    gathered.value({"library": {"version": "5.0.10.1"}, "reason": "with 5.0.10.1 at 10.0.0.9"})
    assert Redactor(names_of(gathered, ())).text("with 5.0.10.1 at 10.0.0.9") == "with 5.0.10.1 at 192.0.2.1"


UNDER_FIXED_KEYS = {
    "parameters": {"rail": "10.1.2.3", "mode": "gpu-a", "file": "/home/bob/x", "size_bytes": 8},
    "version": "5.0.10.1 built by carol@lab.ac.uk in /home/bob/src on gpu-a as bob for 10.1.2.3, fe80::1ff:fe23:4567:1",
    "address": "10.1.2.3",
    "layer": "native-ucx",
    "plan_hash": "0" * 64,
    "role": "client",
    "log_tail": "bob saw 5.0.10.1 at 10.1.2.3",
}


def test_each_name_of_a_host_is_the_same_host() -> None:
    """The inventory's, the kernel's own, and each in short and long form."""
    aliases = {"nid00012": "login1.lab.edu", "own-name": "localhost"}
    redactor = Redactor(names_of(CampaignTexts(), ("login1.lab.edu", "gpu-b", "localhost"), aliases=aliases))
    text = "login1 login1.lab.edu nid00012 nid00012.hsn gpu-b gpu-b.lab.edu own-name localhost"
    assert redactor.text(text) == "n1 n1 n1 n1.hsn n2 n2 n3 localhost"
    assert redactor.host("login1.lab.edu") == redactor.host("nid00012") == "n1"


def test_a_key_of_json_that_identifies_hardware_or_a_job_goes() -> None:
    given = {"interfaces": {"enx0c42a1030065": {"mtu": 1500}, "data0": {}},
             "variables": {"SLURM_JOB_ID": "123", "PBS_JOBID": "7.pbs-1", "USER": "zoe"}}  # fmt: skip
    found = Redactor(NAMES).value(given)
    assert found == {"interfaces": {"enx00005e005301": {"mtu": 1500}, "data0": {}},
                     "variables": {"SLURM_JOB_ID": "j1", "PBS_JOBID": "j2", "USER": "u1"}}  # fmt: skip


def test_names_under_fixed_keys_go_too_and_shield_themselves_nowhere() -> None:
    made = _redacted(UNDER_FIXED_KEYS, ("gpu-a", "native-ucx", "client"))
    assert made == {
        "parameters": {"rail": "192.0.2.1", "mode": "n1", "file": "/home/u1/x", "size_bytes": 8},
        "version": "5.0.10.1 built by m1@example.org in /home/u1/src on n1 as u1 for 192.0.2.1, 2001:db8::1",
        "address": "192.0.2.1",
        "layer": "native-ucx",
        "plan_hash": "0" * 64,
        "role": "client",
        "log_tail": "u1 saw 5.0.10.1 at 192.0.2.1",
    }


def test_keys_that_are_names_go_as_well() -> None:
    value = {
        "10.1.2.3": {"gpu-a": 1, "rx_bytes": 2},
        "versions": {"/home/bob/x": "1.2", "gpu-a": "3"},
        "model name": "8",
    }
    expected = {"192.0.2.1": {"n1": 1, "rx_bytes": 2}, "versions": {"/home/u1/x": "1.2", "n1": "3"}, "model name": "8"}
    assert _redacted(value, ("gpu-a",)) == expected


def test_texts_come_with_the_fixed_key_that_they_stand_under() -> None:
    found = dict(texts({"version": "1.2", "parameters": {"mode": "a", "histogram": "zz"}, "detail": ["b"]}))
    assert {one: found[one] for one in ("1.2", "mode", "a", "b")} == {
        "1.2": "version", "mode": "parameters", "a": "parameters", "b": None}  # fmt: skip
    assert "zz" not in found


def test_two_names_never_share_a_pseudonym_that_was_there() -> None:
    gathered = CampaignTexts()
    gathered.text("u1 192.0.2.1 /home/alice")
    found = Redactor(names_of(gathered, ())).text("u1 192.0.2.1 /home/alice 10.0.0.1")
    assert found == "u1 192.0.2.1 /home/u2 192.0.2.2"


@pytest.mark.parametrize("kind", ["hosts", "addresses", "hardware", "users", "paths", "jobs", "mail"])
def test_what_is_kept_stays(kind: str) -> None:
    texts = {"hosts": "gpu-a", "addresses": "10.1.2.3", "hardware": "0c:42:a1:03:00:65", "users": "alice",
             "paths": "/home/bob/", "jobs": "JobId=12345", "mail": "a.b@lab.ac.uk"}  # fmt: skip
    kept, other = Redactor(NAMES, keep=(kind,)), Redactor(NAMES)
    assert kept.text(texts[kind]) == texts[kind]
    assert other.text(texts[kind]) != texts[kind]


_leaf = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False),
    st.text(max_size=30),
    st.sampled_from([text for text, _ in TEXTS]), st.from_regex(r"\d{1,3}(\.\d{1,3}){0,3}( ms| B)?"),
)  # fmt: skip
_key = st.sampled_from(
    ["host", "hosts", "detail", "log_tail", "parameters", "version", "value", "quantities", "launches"]
)
_json = st.recursive(
    _leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_key, inner, max_size=4), max_leaves=20
)


def _numbers(value: Any) -> list[object]:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return [one for item in value.values() for one in _numbers(item)]
    if isinstance(value, list):
        return [one for item in value for one in _numbers(item)]
    return [] if isinstance(value, str) else [(type(value).__name__, repr(value))]


def _redacted(value: Any, hosts: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON
    gathered = CampaignTexts()
    gathered.value(value)
    return Redactor(names_of(gathered, hosts, users=("alice", "1"))).value(value)


@settings(max_examples=300, deadline=None)
@given(_json)
def test_every_number_stays_and_twice_is_once(value: Any) -> None:  # noqa: ANN401 - any JSON
    once = _redacted(value, ("gpu-a", "8", "node"))
    assert _numbers(once) == _numbers(value)
    assert _redacted(once, ("n1", "n2", "n3")) == once


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 10**12).map(str), st.floats(0, 1e9).map(lambda x: f"{x:.3f}"), st.sampled_from(
    ["ns", "of", "8B", "1", "%", "p99", "alice"])), max_size=12).map(" ".join))  # fmt: skip
def test_numbers_in_running_text_stay(text: str) -> None:
    assert Redactor(NAMES).text(text).split() == ["u1" if word == "alice" else word for word in text.split()]


@pytest.fixture
def told(new_writer: Callable[[], CampaignWriter], record: Callable[..., LaunchRecord]) -> Campaign:
    """A campaign that tells on everybody."""
    with new_writer() as writer:
        plan = writer.campaign.plan
        for place, launch in enumerate(plan.launches):
            tail = f"alice@10.9.8.7 /home/alice/run on {launch.endpoints[0].host}"
            around = [{"host": launch.endpoints[0].host, "variables": {"PATH": "/opt/zoe-tools/bin", "UCX_TLS": "tcp"}}]
            writer.add_launch(record(place, log_tail=[tail, ""], environment=around, reason=tail))
        hosts = dict.fromkeys(end.host for launch in plan.launches for end in launch.endpoints)
        for host in hosts:
            facts = {"schema": "cadge.node/1", "host": host, "nodename": "nid00042.cs.edu",
                     "cmdline": "root=/dev/mapper/zoe-vg BOOTIF=01-0c-42-a1-03-00-65 isolcpus=2-7 mitigations=off",
                     "interfaces": {"enx0c42a1030065": {"mtu": 1500}}}  # fmt: skip
            writer.add_node(NodeFacts.from_object(facts, source="x"))
        writer.put_log(b"alice@10.9.8.7 ssh nid00042\n")
        writer.finish("finished", at=datetime(2026, 11, 25, tzinfo=UTC))
    return writer.campaign


def test_a_copy_is_a_campaign_that_verifies_and_says_what_it_is(told: Campaign, tmp_path: Path) -> None:
    made = copy(told, tmp_path / "copy", Rules())
    assert verify(made.campaign).damages == []
    meta = made.campaign.meta
    assert meta.redacted is not None
    assert meta.campaign_id == told.campaign_id
    assert meta.testbed.hosts == tuple(f"n{place}" for place, _ in enumerate(told.meta.testbed.hosts, 1))
    text = "".join(path.read_text() for path in (tmp_path / "copy").rglob("*") if path.is_file())
    assert "alice" not in text
    assert "10.9.8.7" not in text
    hosts = {end.host for launch in made.campaign.launches() for end in launch.launch.endpoints}
    assert not hosts & set(told.meta.testbed.hosts)
    for launch in told.launches():
        assert _numbers(made.campaign.launch(launch.launch_id).to_object()) == _numbers(launch.to_object())
    again = copy(made.campaign, tmp_path / "again", Rules())
    for path in (tmp_path / "copy").rglob("*.json"):
        assert path.read_bytes() == (again.campaign.path / path.relative_to(tmp_path / "copy")).read_bytes()


def test_free_text_goes_out_only_where_it_is_asked_for(told: Campaign, tmp_path: Path) -> None:
    """What programs print and users type may hold anything; what steers times of it stays."""
    quiet = copy(told, tmp_path / "quiet", Rules()).campaign
    loud = copy(told, tmp_path / "loud", Rules(logs=True)).campaign
    assert [made.meta.redacted.logs for made in (quiet, loud) if made.meta.redacted] == [False, True]
    assert quiet.log() is None
    assert loud.log() is not None
    for mine, full in zip(quiet.launches(), loud.launches(), strict=True):
        assert mine.log_tail == ()
        assert full.log_tail[0].startswith("u1@192.0.2.1 ")
        assert mine.reason == full.reason
        assert [host.variables for host in mine.environment] == [{"UCX_TLS": "tcp"}]
        assert "PATH" in full.environment[0].variables
    assert [node.cmdline for node in quiet.nodes()] == ["isolcpus=2-7 mitigations=off"]
    text = "".join(path.read_text() for path in (tmp_path / "quiet").rglob("*") if path.is_file())
    for name in ("zoe", "nid00042", "cs.edu", "0c42a1", "0c-42", "alice", "10.9.8.7"):
        assert name not in text, name
    said = "".join(path.read_text() for path in (tmp_path / "loud").rglob("*") if path.is_file())
    for name in ("nid00042", "cs.edu", "0c42a1", "0c-42", "alice", "10.9.8.7"):
        assert name not in said, name


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("cadge run --testbed emulated --sizes 8B,64B", "cadge run --testbed emulated --sizes 8B,64B"),
        ("/home/zoe/cadge/.venv/bin/cadge run", "cadge run"),
        ("cadge run --testbed /home/zoe/secret.yml --settings token=Xy12", "cadge run --testbed {} --settings {}"),
    ],
)
def test_a_command_keeps_what_is_of_our_own_words(typed: str, left: str) -> None:
    from cadge_results.publish.published import LEFT_OUT, _typed

    words = {"cadge", "run", "testbed", "emulated", "sizes", "settings", "yml"}
    assert [_typed(one, words) for one in typed.split()] == [one.format(LEFT_OUT) for one in left.split()]


def test_the_digest_of_the_original_is_what_sha256sum_says(told: Campaign) -> None:
    command = (
        "find . -type f \\( -name '*.json' -o -name sweep.yml -o -name trace.bin \\) -not -path './aside/*' "
        "| LC_ALL=C sort | xargs sha256sum | sha256sum"
    )
    done = subprocess.run(["sh", "-c", command], cwd=told.path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == original_sha256(told)


def test_a_layer_that_may_not_be_published_leaves_no_figure_and_its_reason(
    told: Campaign, plan: Plan, tmp_path: Path
) -> None:
    layer = plan.launches[0].subject.layer
    made = copy(told, tmp_path / "copy", Rules(withheld={layer: "its licence forbids it", "unplanned": "x"}))
    assert verify(made.campaign).damages == []
    assert dict(made.withheld) == {layer: "its licence forbids it"}
    assert layer not in {one.launch.layer for one in made.campaign.launches()}
    for point in made.campaign.plan.points:
        if point.subject.layer == layer:
            assert (point.state, point.reason) == ("refused", "not published: its licence forbids it")


def test_a_layer_file_says_why_it_is_not_published() -> None:
    raw = {"schema": "cadge.layer/1", "title": "t", "style": "a", "substrate": "b", "library": "l", "licence": "x",
           "rpc": "native", "places": ["within"], "publish": False}  # fmt: skip
    with pytest.raises(FormatError, match="publish_reason"):
        LayerFile.from_object(raw, source="x")
    assert not LayerFile.from_object(raw | {"publish_reason": "section 3"}, source="x").publish
    assert json.loads(LayerFile.from_object(raw | {"publish": True}, source="x").to_json()).get("publish") is None
