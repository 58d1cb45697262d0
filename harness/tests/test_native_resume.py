# SPDX-License-Identifier: BSD-3-Clause
"""`cadge crosscheck` that was broken off: resumed, each tool has run once a round, and what had run is not repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cadge_harness.native import interleave
from cadge_harness.paths import Checkout
from cadge_results import Campaign, NativeFile, Store

from .conftest import Answer, FakeRunner
from .test_resume import SLOW_RUN

Cadge = Callable[..., Answer]
ROUNDS, SIZES = 3, (8, 16, 32)
RUNS = ROUNDS * len(SIZES)
CROSSCHECK = ("crosscheck", "--sizes", " ".join(f"{size}B" for size in SIZES), "--rounds", str(ROUNDS), "--no-report")
RESUME = ("resume", "--no-report")
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 4
PORTS = (interleave.PORTS[0] + 240 * WORKER, interleave.PORTS[0] + 240 * WORKER + 239)
"""Tests that run side by side each have a part of the ports: two campaigns at once do not share a host."""

TOOL = """\
#!{python} -I
import os, socket, sys, time
given = sys.argv[1:]
if "-h" not in given:
    server = socket.create_server(("", int(given[given.index("-P") + 1])))
    time.sleep(60)
with open({log!r}, "a") as stream:
    print(given[given.index("-l") + 1], file=stream)
runs = len(open({log!r}).readlines())
if os.path.exists({hurt!r}):
    whom, number, at = map(int, open({hurt!r}).read().split())
    if runs == at:
        os.kill(whom, number)
        time.sleep(0.3)
if os.path.exists({broken!r}):
    sys.exit("no luck")
print(given[given.index("-l") + 1], "1.755996", "0.00003476")
"""
"""Stands for NetPIPE over TCP: writes down that it ran, and may send a signal to whoever measures."""


@dataclass(frozen=True)
class Tool:
    """The program, and what it wrote down."""

    folder: Path

    @property
    def runs(self) -> list[int]:
        log = self.folder / "log"
        return [int(line) for line in log.read_text().split()] if log.exists() else []

    def hurt(self, whom: int, number: int, at: int) -> None:
        """Let its so-manieth run send a signal to a process."""
        (self.folder / "hurt").write_text(f"{whom} {number} {at}")

    def spare(self) -> None:
        (self.folder / "hurt").unlink()


@pytest.fixture
def tool(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Layer a-one has a native tool, which is on PATH."""
    with (checkout.root / "layers/a/one.layer.yml").open("a") as stream:
        stream.write("natives: [{tool: NPtcp, pattern: pingpong}]\n")
    folder = tmp_path / "tool"
    folder.mkdir()
    program = folder / "NPtcp"
    files = {name: str(folder / name) for name in ("log", "hurt", "broken")}
    program.write_text(TOOL.format(python=sys.executable, **files))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(interleave, "PORTS", PORTS)
    return Tool(folder)


def last(checkout: Checkout) -> Campaign:
    return Store(checkout.campaigns).open("last")


def native(checkout: Checkout) -> NativeFile:
    found = last(checkout).native()
    assert found is not None
    return found


def check_whole(checkout: Checkout, cadge: Cadge) -> None:
    """Hold that each tool has run once a round, after a launch of that round, and that the table is whole."""
    campaign, found = last(checkout), native(checkout)
    rounds = {launch.launch_id: launch.round for launch in campaign.plan.launches}
    assert campaign.meta.status == "finished"
    assert campaign.missing_launch_ids() == ()
    assert Counter((one.cell_id, one.round) for one in found.readings) == Counter(
        (cell.cell_id, number) for cell in found.cells for number in range(ROUNDS)
    )
    assert all(rounds[one.after] == one.round and one.value is not None for one in found.readings)
    answer = cadge("crosscheck", "last", "--json")
    rows = json.loads(answer.out)["data"]["crosscheck"]["rows"]
    assert [(row["bytes"], row["rounds"]) for row in rows] == [(size, ROUNDS) for size in SIZES]
    assert json.loads(cadge(*RESUME, "--json").out)["data"]["made"] == 0


@pytest.mark.usefixtures("runner")
def test_a_sweep_has_tools_beside_its_points(checkout: Checkout, cadge: Cadge, tool: Tool, tmp_path: Path) -> None:
    """Beside those that are measured as tools measure."""
    sweep = """\
schema: cadge.sweep/2
title: With tools
places: within
waits: block
patterns: [{{pattern: pingpong, bytes: [8B, 64B], touch: [none, write+read]}}]
launches: 3
floors: false
duration: 20ms
{}
"""
    alone, beside = tmp_path / "alone.yml", tmp_path / "beside.yml"
    alone.write_text(sweep.format(""))
    beside.write_text(sweep.format("natives: 8B"))
    assert cadge("run", "--sweep", str(alone), "--no-report").code == 0
    assert (last(checkout).native(), tool.runs) == (None, [])
    assert cadge("run", "--sweep", str(beside), "--no-report").code == 0
    found, campaign = native(checkout), last(checkout)
    assert tool.runs == [8, 8, 8]
    assert [(one.bytes, campaign.plan.by_id[one.point_id].workload["touch"]) for one in found.cells] == [(8, "none")]
    assert (found.rounds, found.measure_ms) == (3, interleave.SWEEP_MS)
    rows = json.loads(cadge("crosscheck", "last", "--json").out)["data"]["crosscheck"]["rows"]
    assert [(row["bytes"], row["rounds"]) for row in rows] == [(8, 3)]


def test_tools_run_in_rounds_that_are_added(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, tool: Tool, tmp_path: Path
) -> None:
    path = tmp_path / "in-time.yml"
    path.write_text("""\
schema: cadge.sweep/2
title: With tools and time
places: within
waits: block
patterns: [{pattern: pingpong, bytes: 8B, touch: none}]
natives: 8B
launches: 3
floors: false
duration: 20ms
budget: 60s
""")
    runner.stop_after = 50  # launches: more than twice as many rounds have
    assert cadge("run", "--sweep", str(path), "--no-report").code == 0
    rounds = last(checkout).plan.rounds
    assert rounds > 3
    assert sorted(one.round for one in native(checkout).readings) == list(range(rounds))
    assert tool.runs == [8] * rounds
    assert len(runner.made) == len(set(runner.made)), "a launch was repeated"


@pytest.mark.parametrize("after", [0, 4])
@pytest.mark.first(1)
def test_resume_runs_the_tools_of_what_is_missing(
    after: int, checkout: Checkout, cadge: Cadge, runner: FakeRunner, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.stop_after = after
    assert cadge(*CROSSCHECK).code == 6
    before, ran = native(checkout), tool.runs
    assert len(before.cells) == len(SIZES)
    assert len(before.readings) == len(ran) < RUNS
    runner.stop_after = None
    now_s = time.time()
    with monkeypatch.context() as patch:
        patch.setattr(interleave.time, "time", lambda: now_s + 60)
        assert cadge(*RESUME).code == 0
    assert len(tool.runs) == RUNS, "what had run was run again"
    after_it = native(checkout)
    ports = [one.command.split("-P ")[1].split()[0] for one in after_it.readings]
    assert len(set(ports)) == RUNS, "the kernel keeps a port for a minute"
    assert after_it.readings[: len(ran)] == before.readings
    assert (after_it.cells, after_it.rounds) == (before.cells, ROUNDS)
    check_whole(checkout, cadge)


def broken_off(tool: Tool, whom: str, number: int, at: int) -> subprocess.CompletedProcess[str]:
    """Run a cross-check in a process of its own, which a tool's so-manieth run sends a signal."""
    ports = f"from cadge_harness.native import interleave; interleave.PORTS = {PORTS}\n"
    hurt = str(tool.folder / "hurt")
    begin = f"{ports}import os, pathlib; pathlib.Path({hurt!r}).write_text(f'{{{whom}}} {number} {at}')"
    conftest = str(Path(__file__).with_name("conftest.py"))
    return subprocess.run(
        [sys.executable, "-c", begin + SLOW_RUN, conftest, *CROSSCHECK],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )


def test_ctrl_c_in_a_tool_lets_it_end_and_resume_makes_the_rest(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, tool: Tool
) -> None:
    """A terminal sends it to the whole group of processes."""
    done = broken_off(tool, "-os.getpid()", signal.SIGINT, at=4)
    assert done.returncode == 130, done.stderr
    assert "continue with: cadge resume" in done.stdout
    assert len(native(checkout).readings) == len(tool.runs) == 4
    assert native(checkout).readings[-1].value is not None
    tool.spare()
    assert runner.stop_after is None
    assert cadge(*RESUME).code == 0
    assert len(tool.runs) == RUNS
    check_whole(checkout, cadge)


@pytest.mark.parametrize("at", [3, RUNS])
@pytest.mark.long
def test_a_killed_crosscheck_is_made_whole(
    at: int, checkout: Checkout, cadge: Cadge, runner: FakeRunner, tool: Tool
) -> None:
    """Kill -9 while a tool runs: its run is made again; behind the last launch, that launch with it."""
    assert runner.made == []
    done = broken_off(tool, "os.getpid()", signal.SIGKILL, at)
    assert done.returncode == -9, done.stderr
    campaign = last(checkout)
    assert len(native(checkout).readings) == at - 1
    assert bool(campaign.missing_launch_ids()) == (at < RUNS)
    assert "continue with: cadge resume" in cadge("status").out
    tool.spare()
    assert cadge(*RESUME).code == 0
    assert len(tool.runs) == RUNS + 1, "the run that was broken off, and no other"
    check_whole(checkout, cadge)
    again = last(checkout).made_again()["alone"]
    assert len(again) == 1


@pytest.mark.long
def test_a_tool_that_gave_nothing_runs_again_with_its_launch(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, tool: Tool
) -> None:
    """As a launch that failed it stays as it is, until it is asked for."""
    (tool.folder / "broken").touch()
    answer = cadge(*CROSSCHECK)
    assert answer.code == 0
    assert "native tools that gave no number; repeat them with: cadge resume --failed" in answer.out
    assert all("no luck" in one.reason for one in native(checkout).readings)
    (tool.folder / "broken").unlink()
    assert "is complete" in cadge(*RESUME).out
    assert len(tool.runs) == RUNS
    made = len(runner.made)
    assert cadge("resume", "--failed", "--no-report").code == 0
    assert len(tool.runs) == 2 * RUNS
    assert made < len(runner.made) <= 2 * made
    rows = json.loads(cadge("crosscheck", "last", "--json").out)["data"]["crosscheck"]["rows"]
    assert {(row["rounds"], row["reason"]) for row in rows} == {(ROUNDS, "")}
    assert last(checkout).meta.status == "finished"


def test_resume_refuses_where_a_tool_is_gone(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.stop_after = 2
    assert cadge(*CROSSCHECK).code == 6
    runner.stop_after = None
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        answer = cadge(*RESUME)
    assert (answer.code, len(runner.made)) == (3, 2)
    assert "NPtcp is not installed: apt install netpipe-tcp" in answer.err
    assert len(tool.runs) == 2
    assert cadge(*RESUME).code == 0
    check_whole(checkout, cadge)


@pytest.mark.long
def test_tools_do_not_let_the_hosts_wait_for_long(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those for which there is no time after a launch run after it was made again: an agent waits for 30 s."""
    monkeypatch.setattr(interleave, "BEGIN_WITHIN_S", 0.0)
    answer = cadge(*CROSSCHECK)
    assert answer.code == 0
    assert "native tools still to run; " in answer.err
    assert len(tool.runs) == RUNS
    assert len(runner.made) > RUNS, "no launch has two tools after it: the test shows nothing"
    check_whole(checkout, cadge)


@pytest.mark.usefixtures("tool")
def test_a_record_that_was_not_stored_has_no_tools_after_it(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    runner.change = lambda record: record | {"colour": "blue"}
    answer = cadge(*CROSSCHECK)
    assert answer.code == 6
    assert "a launch was not stored" in answer.err
    assert native(checkout).readings == ()
