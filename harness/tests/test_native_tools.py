# SPDX-License-Identifier: BSD-3-Clause
"""Native tools: what they print, in Cadge's units; how they are started; where they stand between launches."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_harness.errors import NothingSelectedError
from cadge_harness.native import cells as native_cells
from cadge_harness.native import interleave
from cadge_harness.native.cells import Pair, by_size, cells_of, choose, natives_of, size_of, sweep_text
from cadge_harness.native.due import pairs_of, schedule
from cadge_harness.native.hosts import GUARD, Hosts
from cadge_harness.native.interleave import NativesOfSweep
from cadge_harness.native.tool import TARGET_MS, Ask, Commands, Tool, ToolError, messages
from cadge_harness.native.tools import TOOLS, why_absent
from cadge_harness.paths import find_checkout
from cadge_harness.plan.catalogue import Catalogue, LayerInfo
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.sweep import read_sweep
from cadge_results import Plan
from cadge_results.plugins.catalogue import load_yaml
from cadge_results.plugins.layerfile import LayerFile, Native

from .conftest import WORKLOADS, make_site, make_testbed

ASK = Ask(bytes=8, window=16, place="within", address="127.0.0.1", device="lo", port=18790, cpus=(0, 1))
BY_NAME = {tool.name: tool for tool in TOOLS}
HEAD_OFI = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
UCX = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
SOCKPERF = """\
sockperf: [2;35m== version #3.7-no.git == [0m
sockperf: [Valid Duration] RunTime=0.535 sec; SentMessages=7505; ReceivedMessages=7505
sockperf: Summary: Round trip is 71.237 usec
sockperf: ---> percentile 90.000 =    5.701
sockperf: ---> percentile 50.000 =    5.436
sockperf: ---> percentile 25.000 =    5.296
"""
NETPIPE = """\
Send and receive buffers are 16384 and 131072 bytes
Now starting the main loop
  0:       8 bytes  11104 times -->       8 1.755996   0.00003476
  1.76 Mbps in      34.76 usec
"""
IB_LAT = """\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 8       1000          1.70           5.46         1.75                1.76             0.08            1.91                    5.46
"""  # noqa: E501 - as it is printed
IB_BW = """\
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 65536      1000             2784.70            2780.50              0.044488
"""
KEPT = Path(__file__).with_name("native_printed")
"""Of OSU Micro-Benchmarks 7.4, Intel MPI Benchmarks 2021.11 and fabtests 1.17, on Open MPI 4.1 and libfabric 1.17."""


def kept(name: str) -> str:
    """What a program printed here once."""
    return (KEPT / f"{name}.txt").read_text()


PRINTED = [
    ("ucx_perftest ucp_am_lat", UCX + "20000,0.309,2.768,2.768,2.76,2.76,361236,361236\n", 618.0),
    ("ucx_perftest ucp_am_bw", UCX + "3000,1.2,61.0,61.0,16423.5,16000.0,16000,16000\n", 16000 * 2**20),
    (
        "fi_pingpong",
        HEAD_OFI + "8       20k     =20k     312k        0.56s      0.57      13.95       0.07\n",
        27_900.0,
    ),
    ("NPtcp", NETPIPE, 2 * 64 / (1.755996 * 2**20) * 1e9),
    ("NPopenmpi -a", "0: vm\n       8 106.171341   0.00000057\n", 2 * 64 / (106.171341 * 2**20) * 1e9),
    ("sockperf tcp --nonblocked", SOCKPERF, 5436.0),
    ("qperf tcp_lat", "tcp_lat:\n    latency  =  122.519 us\n", 245_038.0),
    ("qperf tcp_bw", "tcp_bw:\n    bw  =  923.009 MB/sec\n", 923.009e6),
    ("iperf3", json.dumps({"end": {"sum_received": {"bits_per_second": 5738623162.3}}}), 5738623162.3 / 8),
    ("ib_send_lat", IB_LAT, 3500.0),
    ("ib_send_bw", IB_BW, 2780.5 * 2**20),
    ("ucx_perftest ucp_get -O 1", UCX + "100000,0.020,0.022,0.022,339.09,339.09,44445311,44445311\n", 20.0),
    ("ucx_perftest ucp_put_bw -O 1", UCX + "2000,1.193,1.203,1.203,51935.41,51935.41,830967,830967\n", 1193.0),
    ("fi_rdm_pingpong", kept("fi_rdm_pingpong.8"), 4600.0),
    ("fi_rma_bw -o read -W 1", kept("fi_rma_bw.8"), 5140.0),
    ("osu_latency", kept("osu_latency.8"), 3280.0),
    ("osu_latency -z", kept("osu_latency_z.8"), 780.0),
    ("osu_get_latency -s flush", kept("osu_get_latency.8"), 250.0),
    ("osu_put_latency -s flush_local", kept("osu_put_latency.8"), 190.0),
    ("IMB-MPI1 PingPong", kept("IMB-MPI1.8"), 5860.0),
    ("native-mpi echo", "355.5\n", 355.5),
    ("native-mpi oneway", "1.2e+07\n", 96e6),
    ("native-sockets tcp window", "1.06357e+06\n", 1.06357e6),
]


@pytest.mark.parametrize(("name", "printed", "value"), PRINTED)
def test_what_a_tool_prints_comes_in_whole_round_trips_and_bytes_a_second(
    name: str, printed: str, value: float
) -> None:
    assert BY_NAME[name].read(printed, ASK) == pytest.approx(value)


def test_a_rate_of_the_mpi_suites_is_that_of_its_size() -> None:
    asked = replace(ASK, bytes=65536)
    assert BY_NAME["osu_bw"].read(kept("osu_bw.65536"), asked) == pytest.approx(8376.79e6)
    with pytest.raises(ToolError, match="no line for 8 bytes"):
        BY_NAME["osu_bw"].read(kept("osu_bw.65536"), ASK)


def test_what_one_of_them_prints_is_nothing_for_its_sibling() -> None:
    """Headings are read: those of fi_pingpong are others, and who prints no quantile has none."""
    for name, printed in (
        ("fi_pingpong", kept("fi_rdm_pingpong.8")),
        ("fi_rdm_pingpong", HEAD_OFI + "8       20k     =20k     312k        0.56s      0.57      13.95       0.07\n"),
        ("osu_latency -z", kept("osu_latency.8")),
        ("osu_bw", kept("osu_latency.8")),
        ("osu_latency", kept("osu_get_latency.8")),
    ):
        with pytest.raises(ToolError, match=r"no line|no such columns"):
            BY_NAME[name].read(printed, ASK)


def test_a_mean_beside_quantiles_is_still_the_mean() -> None:
    assert BY_NAME["osu_latency"].read(kept("osu_latency_z.8"), ASK) == pytest.approx(2460.0)


def test_fabtests_are_told_a_port_for_addresses_and_one_of_their_own_on_each_side() -> None:
    """`-b PORT` takes the port for the server's name, and on one machine both sides would take the same one."""
    commands = BY_NAME["fi_rdm_pingpong"].commands(ASK)
    sides = [dict(pairwise(side)) for side in (commands.server, commands.client)]
    assert all("-b=18790" in side for side in (commands.server, commands.client))
    assert sides[0]["-B"] != sides[1]["-B"]
    assert commands.client[-1] == ASK.address


@given(st.sampled_from(TOOLS), st.text(), st.sampled_from([printed for _, printed, _ in PRINTED]), st.integers(0, 400))
def test_what_no_tool_prints_is_refused(tool: Tool, noise: str, printed: str, cut: int) -> None:
    for text in (noise, printed[:cut], noise + printed[:cut], printed.replace("0", "x"), f"{printed}\n{noise}"):
        with contextlib.suppress(ToolError):
            assert 0 < tool.read(text, ASK) < float("inf")


@given(st.sampled_from(TOOLS), st.integers(0, 1 << 24), st.sampled_from(["within", "between"]))
def test_every_tool_is_told_size_port_and_server(tool: Tool, size: int, place: str) -> None:
    ask = replace(ASK, bytes=max(size, tool.min_bytes), place="between" if place == "between" else "within", port=18777)
    commands = tool.commands(ask)
    words = " ".join(commands.client)
    assert commands.client[0] == tool.program
    assert str(ask.bytes) in words or tool.program == "IMB-MPI1"
    if commands.ranks:
        assert not commands.server
    else:
        assert "18777" in words
        assert ask.address in words
        assert "18777" in " ".join(commands.server)


def test_a_run_lasts_about_as_long_at_every_size() -> None:
    counts = [messages(replace(ASK, bytes=size), "memory") for size in (8, 4096, 65536, 1 << 20)]
    assert counts == sorted(counts, reverse=True)
    assert all(count >= 300 for count in counts)
    assert TARGET_MS < 1000  # the agents wait, and the round is long


# -- processes


class Guarded:
    """A guard of this test's."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(GUARD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def say(self, **request: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def run(self, *argv: str, port: int = 0) -> None:
        self.say(argv=list(argv), cpu=-1, variables={"PATH": "/usr/bin:/bin"}, port=port, kind="tcp")

    def line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        found: dict[str, object] = json.loads(self.process.stdout.readline())
        return found

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=10)
        self.process.stdout.close()
        return code


def test_a_guard_tells_how_processes_fared_one_after_the_other() -> None:
    guard = Guarded()
    guard.run("sh", "-c", "echo one; echo two >&2; exit 3")
    first = guard.line()
    guard.run("no-such-program-at-all")
    second = guard.line()
    guard.run("sleep", "100")
    guard.say()  # ends it
    third = guard.line()
    guard.run("sleep", "100")  # ended with the input
    assert guard.end() == 0
    assert (first["code"], first["printed"]) == (3, "one\ntwo\n")
    assert first["run_wait_ns"] is None or isinstance(first["run_wait_ns"], int)
    assert second["code"] == 127
    assert third["code"] == -15


def test_a_guard_says_when_somebody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listener = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"
    guard = Guarded()
    guard.run(sys.executable, "-I", "-c", listener, port=port)
    assert guard.line() == {"listens": True}
    assert guard.end() == 0


def _tool(client: str, server: str) -> Tool:
    shell = ("sh", "-c")
    return replace(
        BY_NAME["NPtcp"],
        commands=lambda ask: Commands(server=(*shell, server.replace("PORT", str(ask.port))), client=(*shell, client)),
    )


def test_a_tool_that_fails_is_told_with_its_last_words() -> None:
    testbed = replace(make_testbed(), ssh_config=None, exec_prefix=())
    ask = replace(ASK, cpus=(-1, -1))
    with Hosts(testbed) as hosts:
        with pytest.raises(ToolError, match="its server did not begin: no luck"):
            hosts.run(_tool("true", "echo no luck"), ask, "h1", "h1")
        listening = f"{sys.executable} -Ic 'import socket, time; socket.create_server((\"\", PORT)); time.sleep(9)'"
        with pytest.raises(ToolError, match="it ended with 4: it broke"):
            hosts.run(
                _tool("echo it broke; exit 4", listening.replace("socket.create", "s = socket.create")), ask, "h1", "h1"
            )


DIRECT = [tool for tool in TOOLS if tool.program.startswith("native-")]


@pytest.mark.parametrize("tool", DIRECT, ids=lambda tool: tool.name)
@pytest.mark.paired
def test_a_plain_program_of_ours_measures(tool: Tool) -> None:
    if why := why_absent(tool):
        pytest.skip(why)
    testbed = replace(make_testbed(), ssh_config=None, exec_prefix=())
    ask = replace(ASK, bytes=64, port=18791 + DIRECT.index(tool), cpus=(-1, -1))
    with Hosts(testbed) as hosts:
        fared = hosts.run(short(tool), ask, "h1", "h1")
    value = tool.read(fared.text, ask)
    assert value > (50 if tool.statistic == "p50" else 1)  # ns of a round trip, or messages or bytes a second
    assert len(fared.wall_ns) == 2


def short(tool: Tool) -> Tool:
    """The same with a few messages."""

    def commands(ask: Ask) -> Commands:
        usual = tool.commands(ask)
        count = usual.client[4] if usual.ranks else usual.client[6]
        less = [tuple("640" if word == count else word for word in side) for side in (usual.client, usual.server)]
        return replace(usual, client=less[0], server=less[1])

    return replace(tool, commands=commands)


def test_plain_programs_are_short() -> None:
    """Whoever doubts a yardstick reads all of it."""
    lines = {
        path.name: len(path.read_text().splitlines())
        for path in (find_checkout().root / "harness/native").glob("*.[ch]")
    }
    assert {"mpi.c", "sockets.c"} <= lines.keys()
    assert max(lines.values()) <= 150, lines


def test_ranks_of_several_pairs_are_pinned_each() -> None:
    tool = BY_NAME["native-mpi window"]
    if why := why_absent(tool):
        pytest.skip(why)
    testbed = replace(make_testbed(), ssh_config=None, exec_prefix=())
    with Hosts(testbed) as hosts:
        fared = hosts.run(short(tool), replace(ASK, cpus=(-1, -1, -1, -1)), "h1", "h1")
    assert tool.read(fared.text, ASK) > 0
    assert len(fared.wall_ns) == 4
    assert fared.command.startswith("mpirun -n 4 native-mpi window 8 16 ")


@pytest.mark.parametrize(
    "words", [("sockets", "tcp"), ("sockets", "tcp", "echo", "poll", "0", "1", "9", "listen", "x", "1")]
)
def test_a_plain_program_refuses_what_it_cannot_do(words: tuple[str, ...]) -> None:
    program = find_checkout().programs / f"native-{words[0]}"
    if not program.exists():
        pytest.skip("it is not built")
    done = subprocess.run([program, *words[1:]], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: native-sockets tcp|udp|unix")


# -- the plan


def layer_files() -> list[LayerFile]:
    return [load_yaml(path, LayerFile) for path in sorted((Path(__file__).parents[2] / "layers").glob("*/*.layer.yml"))]


FILES = [file for file in layer_files() if file.natives]


def pairs(monkeypatch: pytest.MonkeyPatch, **more: object) -> tuple[Pair, ...]:
    monkeypatch.setattr(native_cells, "why_absent", lambda tool: "not here" if tool.rdma or tool.source else "")
    given: dict[str, object] = {
        "layers": (), "named": (), "only": (), "places": ["within"], "sizes": [8, 4096, 65536, 1 << 20], **more,
    }  # fmt: skip
    return choose(TOOLS, natives_of(FILES), WORKLOADS.patterns, **given).pairs  # type: ignore[arg-type]


def plan_of(chosen: tuple[Pair, ...], folder: Path, rounds: int = 3, cores: int = 2) -> Plan:
    path = folder / "crosscheck.yml"
    text = sweep_text(chosen, WORKLOADS.patterns, rounds=rounds, seed=5, duration_ms=100)
    path.write_text(text, encoding="utf-8")
    sweep, _ = read_sweep(path, WORKLOADS)
    catalogue = Catalogue(tuple(LayerInfo(file=file) for file in FILES))
    return by_size(make_plan(sweep, catalogue, WORKLOADS, make_site(cores=cores)), len(chosen) * rounds)


def test_layers_name_tools_that_there_are() -> None:
    assert {one.tool for file in FILES for one in file.natives} == {tool.name for tool in TOOLS}
    assert all(one.pattern in WORKLOADS.patterns for file in FILES for one in file.natives)
    for file in FILES:
        usual = [
            (one.pattern, tuple(one.parameters.items()), BY_NAME[one.tool].wait, one.places)
            for one in file.natives
            if one.usual
        ]
        assert len(usual) == len(set(usual))


def test_operations_of_one_pattern_stand_beside_tools_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = pairs(monkeypatch, layers=("rdma-ucx",), only=("onesided",), places=["within", "between"])
    plan = plan_of(chosen, tmp_path)
    done = defaultdict(set)
    for cell in cells_of(chosen, plan):
        point = plan.by_id[cell.point_id]
        assert point.workload["target"] == "active"
        assert cell.statistic == "p50"
        done[point.subject.place, point.workload["operation"]].add((cell.tool, cell.bytes))
    sizes = (8, 4096, 65536, 1 << 20)
    assert done == {
        ("within", "get"): {("ucx_perftest ucp_get -O 1", size) for size in sizes},
        ("within", "put"): {("ucx_perftest ucp_put_bw -O 1", size) for size in sizes},
    }


def test_rates_stand_beside_rates() -> None:
    for file in FILES:
        for one in file.natives:
            is_rate = WORKLOADS.patterns[one.pattern].main_quantity.kind == "rate"
            assert is_rate == (BY_NAME[one.tool].statistic == "rate"), (file.name, one.tool)


def test_each_pattern_and_size_has_launches_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = plan_of(pairs(monkeypatch), tmp_path)
    assert plan.plan_hash == plan.expected_hash()
    assert len({launch.launch_id for launch in plan.launches}) == len(plan.launches)
    attempts: Counter[str] = Counter()
    for launch in plan.launches:
        points = [plan.by_id[one] for one in launch.point_ids]
        attempts.update(launch.point_ids)
        assert len({size_of(one, plan.patterns) for one in points}) == 1
        assert {one.workload.pattern for one in points} in (
            {"pingpong"},
            {"pingpong", "postpoll"},
            {"rpc"},
            {"stream"},
            {"onesided"},
            {"msgrate"},
        )
        assert all(one.subject == launch.subject for one in points)
    assert set(attempts.values()) == {3}
    assert set(attempts) == {point.point_id for point in plan.points if point.state == "planned"}
    assert [name for block in plan.blocks for name in block.launch_ids] == [one.launch_id for one in plan.launches]
    rounds = [launch.round for launch in plan.launches]
    assert all(a <= b for a, b in pairwise(rounds))


def test_every_tool_runs_once_a_round_between_launches_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = pairs(monkeypatch, places=["within", "between"], sizes=[8, 65536])
    plan = plan_of(chosen, tmp_path)
    found = cells_of(chosen, plan)
    assert {cell.cell_id for cell in found} == {pair.cell_id for pair in chosen}
    by_launch = {launch.launch_id: launch for launch in plan.launches}
    runs: dict[str, list[int]] = defaultdict(list)
    for launch_id, cell_ids in schedule(found, plan).items():
        for cell_id in cell_ids:
            runs[cell_id].append(by_launch[launch_id].round)
            assert f" / {by_launch[launch_id].subject.place} / " in cell_id
    planned = {cell.cell_id for cell in found if plan.by_id[cell.point_id].state == "planned"}
    assert {name: sorted(rounds) for name, rounds in runs.items()} == {name: [0, 1, 2] for name in planned}


def test_a_tool_of_several_pairs_does_not_run_where_its_point_is_dropped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No other launch of the round has as many endpoints."""
    monkeypatch.setattr(native_cells, "why_absent", lambda tool: "not here" if tool.rdma else "")
    chosen = choose(
        TOOLS, natives_of(FILES), WORKLOADS.patterns,
        layers=("mpi-p2p",), named=(), only=("msgrate",), places=["within"], sizes=[8],
    ).pairs  # fmt: skip
    plan = plan_of(chosen, tmp_path, cores=4)
    [wide] = [cell for cell in cells_of(chosen, plan) if pairs_of(plan.by_id[cell.point_id], plan) > 1]
    left = [one for one in plan.launches if one.round < 2 or wide.point_id not in one.point_ids]
    dropped = plan.model_copy(update={"launches": tuple(left)})
    ran = [launch_id for launch_id, names in schedule(cells_of(chosen, plan), dropped).items() if wide.cell_id in names]
    assert sorted(one.round for one in left if one.launch_id in ran) == [0, 1]


def test_a_window_of_the_tool_is_that_of_the_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native_cells, "why_absent", lambda tool: "not here" if tool.rdma else "")
    chosen = choose(
        TOOLS, natives_of(FILES), WORKLOADS.patterns,
        layers=("mpi-p2p", "native-ucx"), named=(), only=("msgrate", "stream"), places=["within"], sizes=[8, 65536],
    ).pairs  # fmt: skip
    plan = plan_of(chosen, tmp_path, cores=4)
    found = {
        (cell.tool, cell.bytes, point.workload["depth"], pairs_of(point, plan))
        for cell in cells_of(chosen, plan)
        for point in [plan.by_id[cell.point_id]]
    }
    assert found == {
        ("native-mpi window", 8, 1, 1),
        ("native-mpi window", 8, 64, 1),
        ("native-mpi window", 8, 64, 2),
        ("native-mpi oneway", 8, 16, 1),
        ("native-mpi oneway", 65536, 16, 1),
        ("ucx_perftest ucp_am_bw", 8, 16, 1),
        ("ucx_perftest ucp_am_bw", 65536, 16, 1),
    }
    own = {one.launch_id: set(one.point_ids) for one in plan.launches}
    by_cell = {cell.cell_id: cell for cell in cells_of(chosen, plan)}
    for launch_id, cell_ids in schedule(list(by_cell.values()), plan).items():
        for cell in map(by_cell.__getitem__, cell_ids):
            if pairs_of(plan.by_id[cell.point_id], plan) > 1:
                assert cell.point_id in own[launch_id]


def test_a_pair_has_the_tools_wait_mode_and_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = pairs(monkeypatch, sizes=[8, 65536], only=("pingpong",))
    plan = plan_of(chosen, tmp_path)
    cells = {cell.cell_id: cell for cell in cells_of(chosen, plan)}
    blocking = cells["NPtcp / sockets-tcp / pingpong / within / 8"]
    assert plan.by_id[blocking.point_id].subject.wait == "block"
    assert blocking.beside == {}
    # what it takes at least stands for 8 bytes, and the most that it takes for 64 KiB
    assert {cell.bytes for cell in cells.values() if cell.tool == "sockperf tcp --nonblocked"} == {14, 65507}
    bare = cells["ucx_perftest ucp_am_lat / native-ucx / pingpong / within / 8"].beside
    assert [plan.by_id[bare[name]].workload["stamp"] for name in ("bare", "looking")] == ["none", "write+read"]


def test_what_is_not_here_is_told_with_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    missing = replace(BY_NAME["NPtcp"], program="cadge-no-such-tool")
    assert why_absent(missing) == "cadge-no-such-tool is not installed: apt install netpipe-tcp"
    with pytest.raises(NothingSelectedError, match="apt install netpipe-tcp"):
        choose(
            [missing],
            {"a-one": (Native(tool="NPtcp", pattern="pingpong"),)},
            WORKLOADS.patterns,
            layers=(),
            named=(),
            only=(),
            places=["within"],
            sizes=[8],
        )


@pytest.mark.parametrize("is_here", [True, False])
def test_our_own_program_stands_for_a_tool_that_is_not_here(monkeypatch: pytest.MonkeyPatch, *, is_here: bool) -> None:
    monkeypatch.setattr(
        native_cells, "why_absent", lambda tool: "" if is_here or tool.name == "native-sockets tcp echo" else "not here"
    )
    found = choose(
        TOOLS, natives_of(FILES), WORKLOADS.patterns,
        layers=("sockets-tcp",), named=(), only=("pingpong",), places=["within"], sizes=[64],
    )  # fmt: skip
    names = {pair.tool.name for pair in found.pairs}
    assert names == ({"sockperf tcp --nonblocked", "NPtcp"} if is_here else {"native-sockets tcp echo"})
    assert {one.tool for one in found.absent} == (set() if is_here else {"sockperf tcp --nonblocked", "NPtcp"})


def test_a_plan_has_the_time_of_tools_beside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yml"
    path.write_text(
        "schema: cadge.sweep/2\ntitle: A\nlayers: [mpi-p2p, native-ucx]\nplaces: within\nfloors: false\nlaunches: 3\n"
        "patterns: [{pattern: pingpong, bytes: [8B, 64B], touch: [none, write+read]}]\nduration: 50ms\nnatives: 8B\n"
    )
    monkeypatch.setattr(native_cells, "why_absent", lambda _: "")
    sweep, _ = read_sweep(path, WORKLOADS)
    selection = choose(
        TOOLS, natives_of(FILES), WORKLOADS.patterns,
        layers=(), named=(), only=("pingpong",), places=["within"], sizes=sweep.natives,
    )  # fmt: skip
    beside = NativesOfSweep(selection, WORKLOADS.patterns)
    plan_it = partial(
        make_plan, sweep, Catalogue(tuple(LayerInfo(file=file) for file in FILES)), WORKLOADS, make_site()
    )
    plan = plan_it(beside_ms=beside.round_ms)
    assert [cell.tool for cell in beside.native(plan).cells] == ["native-mpi echo", "ucx_perftest ucp_am_lat"]
    each_ms = interleave.SWEEP_MS + interleave.RANKS_START_MS, interleave.SWEEP_MS + interleave.START_MS
    more_s = plan.estimate.wall_s - plan_it().estimate.wall_s
    assert more_s == pytest.approx(3 * sum(each_ms) / 1000, abs=0.11)


@pytest.mark.parametrize("pairs", ["first", "all"])
def test_a_plan_over_pairs_of_hosts_says_that_no_tool_runs_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pairs: str
) -> None:
    path = tmp_path / "sweep.yml"
    path.write_text(
        "schema: cadge.sweep/2\ntitle: A\nlayers: [native-ucx]\nplaces: [within, between]\nfloors: false\nlaunches: 2\n"
        f"patterns: [{{pattern: pingpong, bytes: 8B, touch: none}}]\nnatives: 8B\n"
        f"pairs: {pairs}\nduration: 50ms\n"
    )
    monkeypatch.setattr(native_cells, "why_absent", lambda _: "")
    sweep, _ = read_sweep(path, WORKLOADS)
    selection = choose(
        TOOLS, natives_of(FILES), WORKLOADS.patterns,
        layers=(), named=(), only=("pingpong",), places=["within", "between"], sizes=sweep.natives,
    )  # fmt: skip
    beside = NativesOfSweep(selection, WORKLOADS.patterns)
    catalogue = Catalogue(tuple(LayerInfo(file=file) for file in FILES))
    plan = make_plan(sweep, catalogue, WORKLOADS, make_site(), beside_ms=beside.round_ms)
    places = {plan.by_id[cell.point_id].subject.place for cell in beside.native(plan).cells}
    is_over_pairs = pairs == "all"
    assert places == ({"within"} if is_over_pairs else {"within", "between"})
    assert [text.partition(":")[0] for text in beside.notices(plan)] == (
        ["no native tool runs between hosts"] if is_over_pairs else []
    )
