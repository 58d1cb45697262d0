# SPDX-License-Identifier: BSD-3-Clause
"""Where the payload went, judged from counters, links and paths."""

from __future__ import annotations

import pytest

from cadge_harness.run.crosscheck import crosschecks, node_problems, version_problems, with_crosschecks
from cadge_results import LaunchRecord, NodeFacts
from cadge_results.formats.base import Place
from cadge_results.formats.result import AdapterFacts, ObjectFacts
from cadge_results.plugins.build import Build

from .conftest import make_record

OPERATIONS = 1000
SIZE = 65_536
PAYLOAD = OPERATIONS * SIZE * 2


def record(place: Place = "between", *, deltas: dict[str, int] | None = None, **changes: object) -> LaunchRecord:
    """A launch that moved PAYLOAD bytes, with so many bytes on each interface of both hosts."""
    device = "data0" if place == "between" else "lo"
    end = {"cpus": [0], "device": device, "address": "198.19.0.11", "raw_device": "raw0"}
    second = "h2" if place == "between" else "h1"
    launch = {
        "schema": "cadge.launch/2",
        "launch_id": "b1-0000-00000000",
        "campaign_id": "c",
        "kind": "layer",
        "layer": "a-one",
        "launcher": "direct",
        "place": place,
        "wait": "poll",
        "seed": 1,
        "deadline_ms": 1000,
        "ports": [1, 2],
        "endpoints": [
            end | {"role": "client", "host": "h1", "peers": [1]},
            end | {"role": "server", "host": second, "peers": [0]},
        ],
        "patterns": {},
        "points": [
            {
                "attempt_id": "0",
                "point_id": "a" * 16,
                "workload": {
                    "pattern": "rpc",
                    "parameters": {
                        "request_bytes": SIZE,
                        "reply_bytes": SIZE,
                        "depth": 1,
                        "payload": "usual",
                        "reply": "cont",
                        "touch": "write+read",
                    },
                },
                "duration_ms": 20,
                "deadline_ms": 1000,
            }
        ],
    }
    found = make_record(launch, **changes)
    seen = {device: 0, "raw0": 0, "lo": 0} | (deltas or {})
    zero = {"rx_bytes": 1000, "tx_bytes": 1000, "rx_packets": 0, "tx_packets": 0}
    hosts = ("h1", "h2") if place == "between" else ("h1",)
    found["counters"] = [
        {
            "host": host,
            "before": dict.fromkeys(seen, zero),
            "after": {
                name: zero | {"rx_bytes": 1000 + count // 2, "tx_bytes": 1000 + count // 2}
                for name, count in seen.items()
            },
        }
        for host in hosts
    ]
    return LaunchRecord.from_object(found, source="test")


def verdicts(given: LaunchRecord, *, own_traffic: bool = False) -> dict[str, str]:
    return {check.name: "" if check.ok else check.detail for check in crosschecks(given, own_traffic=own_traffic)}


def test_payload_on_the_data_network_is_sound() -> None:
    good = record(deltas={"data0": PAYLOAD + 5_000_000, "mgmt0": 50_000, "lo": 1000})
    assert set(verdicts(good).values()) == {""}
    assert with_crosschecks(good).crosschecks == crosschecks(good)
    assert len(crosschecks(good)) == 5


def test_a_launch_of_another_driver_or_adapter_than_its_build_has_is_unsound() -> None:
    build = Build(
        schema_=Build.schema_id(),
        library="cadge",
        title="Cadge",
        version="1a2b3c4d5e",
        source="revision",
        origin="1a2b3c4d5e",
        file="root/bin/cadge-driver",
        build_id="ab" * 20,
        adapters={"sockets-tcp": "cd" * 20},
    )

    def judged(adapter: str, driver: str) -> str:
        good = record(deltas={"data0": PAYLOAD})
        assert good.result is not None
        ran = ObjectFacts(file="/b/cadge-driver", how="program", build_id=driver)
        own = AdapterFacts(name="sockets-tcp", style="sockets", substrate="tcp", build_id=adapter)
        result = good.result.model_copy(update={"adapter": own, "objects": (ran,)})
        launch = good.launch.model_copy(update={"layer": "sockets-tcp@cadge-1a2b3c4d5e"})
        found = good.model_copy(update={"result": result, "launch": launch})
        [check] = [one for one in crosschecks(found, build=build) if one.name == "build_as_asked"]
        assert check.ok is not bool(check.detail)
        return check.detail

    assert judged("cd" * 20, "ab" * 20) == ""
    start = "sockets-tcp@cadge-1a2b3c4d5e is not served by Cadge 1a2b3c4d5e: "
    assert judged("ef" * 20, "ab" * 20) == f"{start}of its adapter, its build id is efefefefefef, not cdcdcdcdcdcd"
    assert judged("cd" * 20, "ef" * 20) == f"{start}of its driver, its build id is efefefefefef, not abababababab"


def test_payload_on_the_management_network_is_unsound() -> None:
    found = verdicts(record(deltas={"data0": 1000, "mgmt0": PAYLOAD, "lo": 0}))
    assert f"h1: {PAYLOAD} bytes went through mgmt0; the payload was {PAYLOAD} bytes" in found["counters"]
    assert f"data0 carried 1000 of {PAYLOAD} bytes of payload" in found["counters"]


def test_addresses_of_many_contexts_are_no_payload() -> None:
    """Each thread has a context, whose addresses the drivers exchange over the management network."""
    stray = PAYLOAD // 5 + 100_000
    few = record(deltas={"data0": PAYLOAD, "mgmt0": stray})
    assert f"{stray} bytes went through mgmt0" in verdicts(few)["counters"]
    document = few.to_object()
    launch = document["launch"]
    assert isinstance(launch, dict)
    launch["endpoints"] = [{**end, "cpus": [-1] * 16} for end in launch["endpoints"]]
    many = LaunchRecord.from_object(document, source="test")
    assert verdicts(many)["counters"] == ""


@pytest.mark.parametrize(("leaked", "sound"), [(0, True), (300_000, False)])
def test_what_attempts_tell_each_other_is_no_payload(leaked: int, sound: bool) -> None:
    """Twelve attempts of 25,000 bytes each, whose phases and counts take 95,356 bytes on the management network."""
    given = record(deltas={"data0": 300_000, "mgmt0": 95_356 + leaked})
    assert given.result is not None
    attempt = given.result.attempts[0].model_copy(update={"operations": 500, "bytes": 25_000})
    many = given.model_copy(update={"result": given.result.model_copy(update={"attempts": (attempt,) * 12})})
    found = verdicts(many)["counters"]
    assert (found == "") is sound, found


@pytest.mark.parametrize(("leaked", "sound"), [(0, True), (120_000, False)])
def test_what_the_drivers_counted_out_of_band_is_no_payload(leaked: int, sound: bool) -> None:
    """Four ends with long addresses (rdma-ucx, alltoall): of 100,565 bytes in the star's middle 79,557 are ours."""
    given = record(deltas={"data0": 420_000, "mgmt0": 100_565 + leaked})
    assert given.result is not None
    ends = tuple(
        end.model_copy(update={"host": f"h{1 + number}"})
        for number, end in enumerate((*given.launch.endpoints, *given.launch.endpoints))
    )
    attempt = given.result.attempts[0].model_copy(update={"bytes": 304_896})
    told = given.model_copy(
        update={
            "launch": given.launch.model_copy(update={"endpoints": ends}),
            "counters": tuple(given.counters[0].model_copy(update={"host": host}) for host in ("h1", "h2", "h3", "h4")),
            "result": given.result.model_copy(
                update={"attempts": (attempt,), "control_bytes": (79_557, 26_686, 26_451, 26_420)}
            ),
        }
    )
    found = verdicts(told)["counters"]
    assert ("h1: " in found) is not sound, found


def test_payload_striped_over_both_networks_is_unsound() -> None:
    assert "mgmt0" in verdicts(record(deltas={"data0": PAYLOAD, "mgmt0": PAYLOAD // 2}))["counters"]


def test_shared_memory_between_hosts_is_unsound() -> None:
    assert "data0 carried 0" in verdicts(record(deltas={"data0": 0, "mgmt0": 0, "lo": 0}))["counters"]


def test_within_a_host_memory_and_loopback_are_sound_and_networks_are_not() -> None:
    assert verdicts(record("within", deltas={"lo": PAYLOAD * 2, "data0": 0}))["counters"] == ""
    assert verdicts(record("within", deltas={"lo": 0, "data0": 0}))["counters"] == ""
    assert "went through data0" in verdicts(record("within", deltas={"lo": 0, "data0": PAYLOAD}))["counters"]


def test_raw_frames_go_through_their_own_link() -> None:
    raw = record(deltas={"data0": 0, "raw0": PAYLOAD})
    assert raw.result is not None
    path = {"medium": "network", "as_asked": True, "device": "raw0"}
    through = LaunchRecord.from_object(
        {**raw.to_object(), "result": {**raw.result.to_object(), "path": [path, path]}}, source="t"
    )
    assert verdicts(through)["counters"] == ""
    assert "raw0" in verdicts(raw)["counters"]


def test_what_a_pattern_sends_beside_the_layer_is_no_stray_payload() -> None:
    """A web server's clients are on the data network, whatever the layer uses; nobody is on that of management."""
    raw = record(deltas={"data0": 4 * PAYLOAD, "raw0": PAYLOAD})
    assert raw.result is not None
    path = {"medium": "network", "as_asked": True, "device": "raw0"}
    through = LaunchRecord.from_object(
        {**raw.to_object(), "result": {**raw.result.to_object(), "path": [path, path]}}, source="t"
    )
    assert "went through data0" in verdicts(through)["counters"]
    assert verdicts(through, own_traffic=True)["counters"] == ""
    astray = record(deltas={"data0": PAYLOAD, "mgmt0": PAYLOAD})
    assert "went through mgmt0" in verdicts(astray, own_traffic=True)["counters"]


def test_little_payload_is_not_judged_by_counters() -> None:
    small = record(deltas={"data0": 0, "mgmt0": 10**9})
    assert small.result is not None
    attempt = small.result.attempts[0].model_copy(update={"operations": 1, "bytes": 2 * SIZE})
    few = small.model_copy(update={"result": small.result.model_copy(update={"attempts": (attempt,)})})
    assert verdicts(few)["counters"] == ""


@pytest.mark.parametrize(
    ("asked", "rates", "said"),
    [
        ("1Gbit", (1_000_000_000, 1_000_000_000), ""),
        ("", (0, 0), ""),
        ("", (None, None), ""),  # of a launch that was stored before rates were read
        ("1Gbit", (1_000_000_000, 0), "h1: the data link's rate is as it was made, not 1000 Mbit/s"),
        ("", (100_000_000, 100_000_000), "h1: the data link's rate is 100 Mbit/s, not as it was made"),
        ("1Gbit", (None, None), "h1: the data link's rate could not be read"),
    ],
)
def test_the_rate_of_the_data_link(asked: str, rates: tuple[int | None, int | None], said: str) -> None:
    link = [{"host": "h1", **{when: {"rate_bits": one} for when, one in zip(("before", "after"), rates, strict=True)}}]
    made = record(link=link)
    launch = made.launch.model_copy(update={"settings": (("link.rate", asked),) if asked else ()})
    [judged] = [one for one in crosschecks(made.model_copy(update={"launch": launch})) if one.name == "data_link"]
    assert (judged.ok, judged.detail) == (not said, said)


def test_programs_and_offloads_on_the_data_link() -> None:
    plain = {"xdp": False, "offloads": {"tso": True, "gro": True}}
    link = [
        {"host": "h1", "before": plain, "after": plain | {"offloads": {"tso": False, "gro": True}}},
        {"host": "h2", "before": plain, "after": plain | {"xdp": True}},
    ]
    found = verdicts(record(link=link))
    assert found["data_link"] == (
        "h1: offloads of the data link changed: tso; h2: an XDP program is attached to the data link"
    )
    assert verdicts(record(link=[{"host": "h1", "before": plain, "after": plain}]))["data_link"] == ""


def test_another_transport_than_asked() -> None:
    good = record(deltas={"data0": PAYLOAD})
    assert good.result is not None
    path = {"medium": "network", "as_asked": False, "asked": "device data0", "used": "tcp/mgmt0"}
    wrong = {**good.to_object(), "result": {**good.result.to_object(), "path": [path]}}
    assert verdicts(LaunchRecord.from_object(wrong, source="t"))["path_as_asked"] == (
        "endpoint 0 asked for device data0, used tcp/mgmt0"
    )


def test_a_path_that_is_not_read_back_is_left_to_the_counters() -> None:
    path = {"medium": "unknown", "as_asked": False, "asked": "device data0", "used": "not read back: no words"}
    for deltas, counters in (({"data0": PAYLOAD}, ""), ({"mgmt0": PAYLOAD}, "went through mgmt0")):
        good = record(deltas=deltas)
        assert good.result is not None
        raw = {**good.to_object(), "result": {**good.result.to_object(), "path": [path]}}
        found = {check.name: check for check in crosschecks(LaunchRecord.from_object(raw, source="t"))}
        assert found["path_as_asked"].ok
        assert found["path_as_asked"].detail == "endpoint 0 asked for device data0, not read back: no words"
        assert found["counters"].ok is (not counters)
        assert counters in found["counters"].detail


def several(deltas: dict[str, int], paths: list[dict[str, object]]) -> LaunchRecord:
    """A launch between hosts with a third endpoint, on the host of the first."""
    raw = record(deltas=deltas).to_object()
    launch, result = raw["launch"], raw["result"]
    assert isinstance(launch, dict)
    assert isinstance(result, dict)
    assert isinstance(launch["endpoints"], list)
    first, second = launch["endpoints"]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    launch["endpoints"] = [first | {"peers": [1, 2]}, second | {"peers": [0, 2]}, first | {"peers": [0, 1]}]
    assert isinstance(raw["counters"], list)
    assert isinstance(raw["counters"][1], dict)
    raw["counters"][1]["after"]["lo"] = raw["counters"][1]["before"]["lo"]
    raw["exit_codes"] = [0, 0, 0]
    result["path"] = [{"medium": "network", "as_asked": True, **path} for path in paths]
    return LaunchRecord.from_object(raw, source="t")


def test_endpoints_of_one_host_have_no_network_between_them() -> None:
    beside = {"endpoint": 0, "peer": 2, "as_asked": False, "asked": "device data0", "used": "sysv/memory"}
    across = {"endpoint": 0, "peer": 1, "as_asked": False, "asked": "device data0", "used": "tcp/mgmt0"}
    good = several({"data0": PAYLOAD, "lo": 2 * PAYLOAD}, [beside])
    assert set(verdicts(good).values()) == {""}
    assert verdicts(several({"data0": PAYLOAD, "lo": 0}, [beside, across]))["path_as_asked"] == (
        "endpoint 0 asked for device data0, used tcp/mgmt0"
    )
    assert "sent and received" in verdicts(several({"data0": 1000, "lo": 0}, [beside]))["counters"]
    assert "went through mgmt0" in verdicts(several({"data0": PAYLOAD, "mgmt0": PAYLOAD}, [beside]))["counters"]


@pytest.mark.parametrize(
    ("launcher", "codes", "said"),
    [
        ("direct", [0, 0], ""),
        ("direct", [0, -11], "endpoint 1 ended by signal 11 (SIGSEGV), after its results"),
        ("direct", [3, 0], "endpoint 0 ended with exit status 3, after its results"),
        ("direct", [0, None], "endpoint 1 ended without an exit status, after its results"),
        ("direct", [0], "endpoint 1 ended without an exit status, after its results"),
        ("direct", [0, -77], "endpoint 1 ended by signal 77, after its results"),
        ("mpirun", [0, None], ""),
        ("mpirun", [139, None], "the launcher ended with exit status 139, after the results"),
        ("mpirun", [-9, None], "the launcher ended by signal 9 (SIGKILL), after the results"),
        ("mpirun", [None, None], "the launcher ended without an exit status, after the results"),
    ],
)
def test_an_endpoint_that_ends_badly_after_its_results_is_unsound(
    launcher: str, codes: list[int | None], said: str
) -> None:
    given = record(deltas={"data0": PAYLOAD, "lo": 0}, exit_codes=codes).to_object()
    assert isinstance(given["launch"], dict)
    given["launch"]["launcher"] = launcher
    found = LaunchRecord.from_object(given, source="t")
    assert verdicts(found)["ended_well"] == said


def without(side: str, name: str) -> LaunchRecord:
    """A good launch whose second host has no counters of an interface before it or after it."""
    given = record(deltas={"data0": PAYLOAD, "mgmt0": 50_000, "raw0": 0, "lo": 1000}).to_object()
    assert isinstance(given["counters"], list)
    for one in ("before", "after") if side == "ever" else (side,):
        del given["counters"][1][one][name]
    return LaunchRecord.from_object(given, source="t")


@pytest.mark.parametrize("side", ["before", "after", "ever"])
@pytest.mark.parametrize("name", ["data0", "raw0", "lo"])
def test_counters_that_are_missing_are_unsound(name: str, side: str) -> None:
    when = {"before": " before the launch", "after": " after the launch", "ever": ""}[side]
    assert verdicts(without(side, name))["counters_read"] == f"h2: there are no counters of {name}{when}"


@pytest.mark.parametrize("side", ["before", "after"])
def test_counters_of_a_network_that_was_not_asked_for_are_not_missed_on_one_side(side: str) -> None:
    assert verdicts(without(side, "mgmt0"))["counters_read"] == f"h2: there are no counters of mgmt0 {side} the launch"


def test_what_the_agent_could_not_count_is_unsound() -> None:
    given = record(deltas={"data0": PAYLOAD, "lo": 0, "raw0": 0}).to_object()
    assert isinstance(given["counters"], list)
    given["counters"][0]["uncounted"] = ["the management network: no interface here has 10.0.0.1"]
    found = verdicts(LaunchRecord.from_object(given, source="t"))
    assert found["counters_read"] == "h1: not counted: the management network: no interface here has 10.0.0.1"


def test_a_host_without_counters_is_unsound() -> None:
    given = record(deltas={"data0": PAYLOAD, "lo": 0, "raw0": 0})
    of_first = given.model_copy(update={"counters": given.counters[:1]})
    of_none = given.model_copy(update={"counters": ()})
    assert verdicts(of_first)["counters_read"] == "h2: there are no counters at all"
    assert verdicts(of_none)["counters_read"] == "h1: there are no counters at all; h2: there are no counters at all"


def test_launches_without_a_result_are_not_judged() -> None:
    assert crosschecks(record(result=None, status="failed", reason="x")) == ()


def test_libraries_that_differ_between_hosts() -> None:
    nodes = [
        NodeFacts.from_object(
            {
                "schema": "cadge.node/1",
                "host": host,
                "libraries": {"UCX": {"version": version, "file": "f"}, "libc": {"version": "2.36"}},
            },
            source="t",
        )
        for host, version in (("h1", "1.13.1"), ("h2", "1.18.1"))
    ]  # fmt: skip
    assert node_problems(nodes) == ("UCX differs between hosts: 1.13.1 on h1, 1.18.1 on h2",)
    assert node_problems(nodes[:1]) == ()


def test_settings_of_the_system_that_differ_between_hosts() -> None:
    ucx, mpi = "/etc/ucx/ucx.conf", "/etc/openmpi/openmpi-mca-params.conf"
    same, other = {"bytes": 1, "sha256": "a" * 64}, {"bytes": 1, "sha256": "b" * 64}
    nodes = [
        NodeFacts.from_object({"schema": "cadge.node/1", "host": host, "configuration": files}, source="t")
        for host, files in (
            ("h1", {ucx: same, mpi: same}),
            ("h2", {ucx: other, mpi: same}),
            ("h3", {ucx: other, "/opt/etc": {"unknown": "Permission denied"}}),
        )
    ]
    assert node_problems(nodes) == (
        f"{mpi} differs between hosts: aaaaaaaa on h1 and h2, not there on h3",
        f"{ucx} differs between hosts: aaaaaaaa on h1, bbbbbbbb on h2 and h3",
    )
    assert node_problems(nodes[:1]) == ()


def test_libraries_that_differ_between_launches() -> None:
    first, second = record(), record()
    assert first.result is not None
    results = [
        {**first.result.to_object(), "library": {"name": "UCX", "stated_version": version, "build_id": "0123456789ab"}}
        for version in ("1.13.1", "1.18.1")
    ]  # fmt: skip
    records = [
        LaunchRecord.from_object({**item.to_object(), "result": result}, source="t")
        for item, result in zip((first, second), results, strict=True)
    ]
    assert version_problems(records) == (
        "a-one: launches used different libraries: 1.13.1 (build 0123456789ab), 1.18.1 (build 0123456789ab)",
    )
    assert version_problems(records[:1]) == ()
