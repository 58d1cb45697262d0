# SPDX-License-Identifier: BSD-3-Clause
"""Pattern and floor files: those of this checkout, and what is refused of others."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cadge_results import FloorFile, FormatError, PatternFile, Point, Subject, Workload, read_workloads
from cadge_results.plugins.parameter import plain
from cadge_results.plugins.pattern import declared

HARNESS = Path(__file__).parents[2] / "harness"
WORKLOADS = read_workloads(HARNESS)
EVERY = {**WORKLOADS.patterns, **WORKLOADS.forms}
RPC = WORKLOADS.patterns["rpc"]


def raw() -> dict[str, Any]:
    found = yaml.safe_load((HARNESS / "patterns/rpc/rpc.pattern.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_an_older_plan_keeps_its_hash() -> None:
    """What a plan of earlier files does not have is not written into it either: its hash is that of what it holds."""
    for file, new in (
        (WORKLOADS.floors["floor-tcp"], "copies"),
        (RPC, "copied"),
        (RPC, "call_caps"),
        (RPC, "hosts_between"),
        (RPC, "limits"),
        (RPC, "programs"),
    ):
        assert new not in file.to_object()
        assert type(file).from_object(file.to_object(), source="x") == file
    assert "caveat" not in RPC.to_object()["quantities"]["latency"]


def test_what_there_is() -> None:
    known = ("rpc", "pingpong", "stream", "onesided")
    assert tuple(name for name in WORKLOADS.ordered if name in known) == known
    assert set(WORKLOADS.forms) == {"exchange", "flow"}
    assert "floor-tcp" in WORKLOADS.floors
    assert WORKLOADS.floors["floor-tcp"].reference
    for name, floor in WORKLOADS.floors.items():
        assert name == floor.name
        assert set(floor.forms) <= set(WORKLOADS.forms)


def test_calls_are_a_layers_own_where_it_grants_all_that_they_take() -> None:
    delegated = WORKLOADS.patterns["delegated"]
    assert RPC.calls_are_native({"RPC", "RELIABLE"})
    assert not delegated.calls_are_native({"RPC", "RELIABLE"})
    assert delegated.calls_are_native({"RPC", "DELEGATE"})


@pytest.mark.parametrize("name", EVERY)
def test_its_document_can_be_stored(name: str) -> None:
    file = EVERY[name]
    assert PatternFile.parse(file.to_json(), source=name) == file
    assert list(PatternFile.parse(file.to_json(), source=name).parameters) == list(file.parameters)


def test_defaults_and_followers_are_filled_in() -> None:
    found = RPC.workload("rpc", {"request_bytes": 64})
    usual = {"depth": 1, "touch": "write+read", "payload": "usual", "reply": "cont"}
    assert dict(found.items()) == {"request_bytes": 64, "reply_bytes": 64, **usual}
    assert RPC.moved_bytes(found) == (64, 64)
    assert RPC.deep(found) == 1
    other = RPC.workload("rpc", {"request_bytes": 64, "reply_bytes": 8, "depth": 4})
    assert RPC.fill(RPC.workload_words, found, plain) == "64 B"
    assert RPC.fill(RPC.workload_words, other, plain) == "64 B \u2192 8 B, 4 in flight"
    fetch = WORKLOADS.patterns["onesided"].workload("onesided", {"bytes": 8, "operation": "fetch_add"})
    assert WORKLOADS.patterns["onesided"].caps_needed(fetch) == ("FETCH_ADD",)
    words = WORKLOADS.patterns["onesided"]
    assert words.fill(words.workload_words, fetch, plain) == "fetch-add 8 B, passive target"
    assert words.exists(fetch)
    wider = words.workload("onesided", {"bytes": 16, "operation": "fetch_add"})
    assert not words.exists(wider)


def test_a_word_says_how_many_threads_there_are() -> None:
    hands = RPC.roles["client"].hands
    of_word = {
        word: RPC.number(hands, RPC.workload("rpc", {"request_bytes": 8, "reply": word}))
        for word in RPC.parameters["reply"].values
    }
    assert of_word == {"cont": 0, "wait": 1, "defer": 1}


def test_what_ranks_goes_first_and_what_does_not_stands_beside() -> None:
    ranking, beside = (RPC.workload("rpc", {"request_bytes": 64, "touch": touch}) for touch in ("write+read", "none"))
    assert (RPC.does_rank(ranking), RPC.does_rank(beside)) == (True, False)
    assert RPC.fill(RPC.workload_words, beside, plain) == "64 B, touch none"
    assert RPC.reading_order[-1] == "touch", "rows of one size stand beside each other"
    aged = raw()
    del aged["parameters"]["touch"]
    aged["floor"]["carry"] = []
    aged["words"] = {}
    assert PatternFile.from_object(aged, source="x").does_rank(Workload(pattern="rpc", parameters=beside.parameters))


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({}, "rpc needs request_bytes"),
        ({"request_bytes": 8, "depth": 8192}, "rpc: depth: 8192 is more than the maximum of 4096 operations"),
        ({"request_bytes": 8, "depth": 0}, "less than the minimum of 1 operations"),
        ({"request_bytes": 2**31}, "more than the maximum of 1073741824 bytes"),
        ({"request_bytes": "put"}, "'put' is not a number"),
        ({"request_bytes": 8, "touch": "read"}, "'read' is not one of none, write\\+read"),
        ({"request_bytes": 8, "width": 1}, "rpc has no parameter width; it has request_bytes, reply_bytes, depth"),
    ],
)
def test_values_outside_are_refused(given_values: dict[str, int | str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RPC.workload("rpc", given_values)


def test_a_share_is_said_in_percent() -> None:
    loaded = WORKLOADS.patterns["load"]
    found = loaded.workload("load", {"request_bytes": 8, "load_percent": 90, "depth": 16})
    assert loaded.fill(loaded.workload_words, found, plain) == "8 B at 90 % load, at most 16 in flight"
    with pytest.raises(ValueError, match="151 is more than the maximum of 150 percent"):
        loaded.workload("load", {"request_bytes": 8, "load_percent": 151})


def test_a_rate_replaces_a_share() -> None:
    loaded = WORKLOADS.patterns["load"]
    given = loaded.workload("load", {"request_bytes": 8, "offered_per_s": 2000})
    assert loaded.replaced(given) == ("load_percent",)
    assert loaded.exists(given)
    assert loaded.fill(loaded.workload_words, given, plain) == "8 B, 2000 calls/s"
    assert not loaded.exists(loaded.workload("load", {"request_bytes": 8, "load_percent": 90, "offered_per_s": 2000}))
    press = WORKLOADS.patterns["press"]
    said = press.fill(
        press.workload_words, press.workload("press", {"working_percent": 50, "offered_per_s": 500}), plain
    )
    assert "500 requests/s" in said
    assert "load" not in said


@pytest.mark.parametrize("name", ["request_bytes", "nothing"])
def test_what_replaces_a_parameter_has_a_default(name: str) -> None:
    raw = WORKLOADS.patterns["load"].to_object()
    raw["parameters"]["load_percent"]["unless"] = name
    with pytest.raises(FormatError, match="have to have defaults"):
        PatternFile.from_object(raw, source="load")


@pytest.mark.parametrize("name", ["response", "nothing"])
def test_a_share_is_one_of_a_rate(name: str) -> None:
    raw = WORKLOADS.patterns["load"].to_object()
    raw["parameters"]["load_percent"]["of"] = name
    with pytest.raises(FormatError, match="is a share of"):
        PatternFile.from_object(raw, source="load")


KNEE = {
    "rest": 10,
    "times": 5,
    "offered": "offered",
    "achieved": "achieved",
    "share": 0.99,
    "generator": "null",
    "marked": 0.3,
}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("quantities", "latency", "caveat"), "It is late.", "a caveat is of a count"),
        (
            ("quantities", "latency"),
            {"title": "t", "unit": "x", "better": "low", "kind": "count", "caveat": "It is."},
            "latency is the main one, and cannot be a caveat",
        ),
        (("axis",), "size", "there is no parameter size"),
        (("parameters", "depth", "max"), None, "an integer has unit, min and max"),
        (("parameters", "depth", "default"), 5000, "5000 is more than the maximum"),
        (("parameters", "depth", "follows"), "request_bytes", "either default or follows"),
        (("parameters", "touch", "ranks"), "read", "ranks: 'read' is not one of none, write\\+read"),
        (("parameters", "touch", "values"), ["none", "write read"], "values"),
        (("parameters", "wait"), {"title": "w", "unit": "ns", "min": 0, "max": 1}, "wait is a key of the sweep"),
        (("roles", "client", "acts"), False, "one of them has to act"),
        (("roles", "client", "peers"), ["boss"], "client has peers boss, which is no role"),
        (("roles", "server", "peers"), [], "client has channels to server, but server has none to client"),
        (("roles", "client", "paired"), True, "client is paired with server, which has to be paired, and as many"),
        (
            ("roles", "client", "peers"),
            ["server", "server"],
            "client lists server more often, or less, than server lists",
        ),
        (("roles", "client", "when"), {"width": 1}, "there is no parameter width"),
        (("roles", "server", "acts"), {"width": 1}, "there is no parameter width"),
        (("roles", "server", "acts"), {"touch": "often"}, "touch: 'often' is not one of"),
        (("baseline",), {"parameter": "depth", "value": 1}, "baseline: there is no choice depth"),
        (("baseline",), {"parameter": "touch", "value": "read"}, "baseline: touch: 'read' is not one of none"),
        (("knee",), {**KNEE, "rest": -1}, "knee"),
        (("knee",), KNEE, "knee: there is no rate offered"),
        (("roles", "client", "count"), "many", "there is no number many among the parameters"),
        (("roles", "client", "count"), 65, "65 is more than 64"),
        (("roles", "client", "colour"), "red", "roles.client.colour"),
        (("roles", "client", "threads"), {"way": {"a": 1}}, "there is no choice way among the parameters"),
        (("roles", "client", "threads"), {"depth": {"1": 1}}, "there is no choice depth among the parameters"),
        (("roles", "client", "threads"), {"touch": {"none": 2}}, "for each of none, write\\+read"),
        (("roles", "client", "hands"), {"touch": {"none": 1, "write+read": "many"}}, "there is no number many"),
        (("roles", "client", "threads"), {"touch": {"none": 1, "write+read": 0}}, "a role has one thread at least"),
        (("roles", "client", "threads"), {}, "a number depends on one choice"),
        (("quantities", "latency", "unit"), "us", "a histogram is in ns"),
        (("quantities", "latency", "kind"), "guess", "kind"),
        (("constraints",), [{"when": {"depth": 1}, "then": {"width": 1}}], "there is no parameter width"),
        (("limits",), [{"when": {"width": 1}, "waits": ["block"], "reason": "x"}], "there is no parameter width"),
        (("limits",), [{"when": {}, "most": {"touch": 1}, "reason": "x"}], "limits: there is no number touch"),
        (("limits",), [{"when": {}, "reason": "x"}], "a limit has layers, waits or most"),
        (("programs",), [{"when": {"width": 1}, "program": "x", "package": "xx"}], "there is no parameter width"),
        (("programs",), [{"when": {}, "program": "x y", "package": "xx"}], "programs.0.program"),
        (("floor", "alike", "depth", "is"), "follows", "depth follows nothing"),
        (("floor", "sizes"), ["depth"], "depth is no size in bytes"),
        (("floor", "form"), None, "form and sizes belong together"),
        (("words", "workload"), "{size}", "there is no parameter size"),
        (("outstanding",), "width", "there is no parameter width"),
        (("modelled_as",), [{"messages": ["width"]}], "modelled_as: there is no parameter width"),
        (("modelled_as",), [{"messages": ["depth"]}], "modelled_as: depth is not in bytes"),
        (("modelled_as",), [{"messages": ["reply_bytes"], "works": "depth"}], "modelled_as: depth is not in ns"),
    ],
)
def test_what_a_pattern_file_may_not_say(path: tuple[str, ...], value: object, message: str) -> None:
    document = copy.deepcopy(raw())
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    with pytest.raises(FormatError, match=message):
        PatternFile.from_object(document, source="x.pattern.yml")


def test_a_baseline_is_alike_but_for_what_does_not_exist_beside_it() -> None:
    document = copy.deepcopy(raw())
    document["baseline"] = {"parameter": "payload", "value": "usual"}
    document["constraints"] = [{"when": {"payload": "usual"}, "then": {"depth": 1}}]
    file = PatternFile.from_object(document, source="x")
    given = {"request_bytes": 8, "reply_bytes": 64, "touch": "none"}
    usual = file.workload("rpc", given)
    assert file.baseline_of(usual) is None, "it is one itself"
    assert file.baseline_of(file.workload("rpc", {**given, "payload": "copied", "depth": 4})) == usual
    assert RPC.baseline_of(RPC.workload("rpc", {"request_bytes": 8})) is None, "this pattern has none"
    document["constraints"].append({"when": {"touch": "none"}, "then": {"payload": "copied"}})
    file = PatternFile.from_object(document, source="x")
    assert file.baseline_of(file.workload("rpc", {**given, "payload": "copied"})) is None, (
        "there is none with touch none"
    )


def test_files_that_do_not_fit_together(tmp_path: Path) -> None:
    for folder in ("patterns/rpc", "floors"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "patterns/rpc/rpc.pattern.yml").write_text(yaml.safe_dump(raw()))
    with pytest.raises(FormatError, match=r"patterns/rpc: rpc\.c is missing"):
        read_workloads(tmp_path)
    (tmp_path / "patterns/rpc/rpc.c").touch()
    with pytest.raises(FormatError, match="there is no form exchange"):
        read_workloads(tmp_path)
    form = (HARNESS / "floors" / "exchange.pattern.yml").read_text()
    (tmp_path / "floors" / "exchange.pattern.yml").write_text(form)
    assert read_workloads(tmp_path).ordered == ("rpc",)
    (tmp_path / "floors" / "mine.floor.yml").write_text((HARNESS / "floors" / "tcp.floor.yml").read_text())
    with pytest.raises(FormatError, match="its substrate says tcp"):
        read_workloads(tmp_path)


def test_a_floors_bounds_are_in_order() -> None:
    floor = yaml.safe_load((HARNESS / "floors" / "tcp.floor.yml").read_text())
    floor["bytes_max"] = {"bytes": 0, "reason": "none"}
    with pytest.raises(FormatError, match="bytes_min is more than bytes_max"):
        FloorFile.from_object(floor, source="x")


def test_limits_travel_with_a_launch() -> None:
    found = declared({"rpc": RPC, "onesided": WORKLOADS.patterns["onesided"]})
    assert found["rpc"]["depth"].model_dump(mode="json") == {"type": "integer", "min": 1, "max": 4096}
    assert found["onesided"]["target"].model_dump(mode="json") == {"type": "choice", "values": ["active", "passive"]}


values = st.fixed_dictionaries(
    {"request_bytes": st.integers(0, 2**30)},
    optional={"reply_bytes": st.integers(0, 2**30), "depth": st.integers(1, 4096)},
)


@given(values)
def test_every_allowed_value_makes_a_workload(given_values: dict[str, int]) -> None:
    found = RPC.workload("rpc", given_values)
    assert set(dict(found.items())) == set(RPC.parameters)
    assert Workload.model_validate_json(found.model_dump_json()) == found
    for name in RPC.parameters:
        usual = given_values.get(name) in (None, given_values["request_bytes"] if name == "reply_bytes" else 1)
        assert RPC.is_usual(name, found) == (usual and name != "request_bytes")


@given(values, st.sampled_from(["poll", "block"]))
def test_a_points_id_depends_on_what_is_measured_alone(given_values: dict[str, int], wait: Any) -> None:  # noqa: ANN401
    workload = RPC.workload("rpc", given_values)
    turned = Workload(pattern="rpc", parameters=tuple(reversed(workload.parameters)))
    one = Subject(layer="null-self", settings={"b": "1", "a": "2"}, place="self", wait=wait)  # type: ignore[arg-type]
    other = Subject(layer="null-self", settings={"a": "2", "b": "1"}, place="self", wait=wait)  # type: ignore[arg-type]
    assert one == other
    assert hash(one) == hash(other)
    first = Point(subject=one, workload=workload).point_id
    assert first == Point(subject=other, workload=workload).point_id
    assert len(first) == 16
    assert first != Point(subject=one.model_copy(update={"shims": ("trace",)}), workload=turned).point_id


def test_a_points_id_is_the_hash_of_its_canonical_json() -> None:
    subject = Subject(layer="sockets-tcp", place="within", wait="poll")
    point = Point(subject=subject, workload=Workload(pattern="pingpong", parameters={"bytes": 8}))  # type: ignore[arg-type]
    assert point.point_id == "de55b951faf95d80"
