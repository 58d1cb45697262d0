# SPDX-License-Identifier: BSD-3-Clause
"""The ladder of a study: rungs beside the first one of the same round, and what was published beside ours or not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
import yaml

from cadge_analysis.errors import BadInputError
from cadge_analysis.messages import say
from cadge_analysis.study import published
from cadge_analysis.study.views import build
from cadge_results import Campaign

DARPC = Path(__file__).parents[1] / "studies" / "darpc"
STEPS = {"per_connection": 1.0, "dispatcher": 0.5, "clusters": 3.0, "stealing": 2.0}
RATE = "calls a second, 1/s"


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Every round is faster than the one before by half, so that only those of one round show a factor."""
    known = synthetic.flat(point)
    calls = round(10_000 * known["clients"] * STEPS[known["step"]] * known["server_threads"] * 1.5**number)
    attempt["quantities"] = {}
    synthetic.set_samples(attempt, [(10_000, 2000)], "latency")
    synthetic.set_rate(attempt, calls, 1_000_000_000, "rate")
    attempt |= {"operations": 1000, "elapsed_ns": 1_000_000_000}
    for side, (cpu_ns, switches) in enumerate(((2_000_000, 500), (6_000_000, 1500))):
        use = {"user_ns": cpu_ns, "system_ns": cpu_ns, "voluntary_switches": switches}
        attempt["cpu"][side] |= use
    if known["layer"] == "native-ucx" and known["step"] == "stealing":
        attempt |= {"status": "failed", "reason_code": "DEADLINE", "reason": "nobody stole", "quantities": {}}
    if known["layer"] == "native-ucx" and known["step"] == "clusters" and known["clients"] > 1:
        attempt |= {"status": "failed", "reason_code": "DEADLINE", "reason": "nobody answered", "quantities": {}}


def make(root: Path, cores: int | None) -> Campaign:
    given = [{"step": "per_connection"}, *({"step": step, "server_threads": 2} for step in list(STEPS)[1:])]
    return synthetic.make(
        root,
        synthetic.Options(
            layers=("native-ucx", "sockets-tcp"),
            sizes=(1, 16),
            places=("between",),
            waits=("block",),
            patterns=(("servers", 1),),
            given=(*given, {"step": "per_connection", "service_ns": 1000}),
            node={"cores": {"allowed": list(range(cores))} if cores else {"unknown": "it is hidden"}},
            attempt_hook=by_hand,
            floors=False,
            troubles=False,
        ),
    )


def section(root: Path, cores: int | None) -> pagereader.Node:
    build([make(root / "c", cores)], DARPC, root / "page.html")
    return pagereader.read((root / "page.html").read_text()).one("section", id="ladder-1")


@pytest.fixture(scope="module")
def two_cores(tmp_path_factory: pytest.TempPathFactory) -> pagereader.Node:
    return section(tmp_path_factory.mktemp("two"), 2)


def rows_of(found: pagereader.Node, measure: str) -> dict[tuple[str, str], list[pagereader.Node]]:
    [table] = [one for one in found.all("div", role="group") if one.attrs["aria-label"].endswith(measure)]
    return {(row.one("th").own, row.one("th").one("small").text): row.all("td") for row in table.one("tbody").all("tr")}


def test_each_rung_stands_beside_the_first_of_its_round(two_cores: pagereader.Node) -> None:
    rows = rows_of(two_cores, RATE)
    assert [name for layer, name in rows if layer == "sockets-tcp"] == [
        "a thread a connection",
        "a dispatcher, workers: 2",
        "clusters that process in place: 2",
        "clusters that steal: 2",
    ]
    one, sixteen = rows["sockets-tcp", "clusters that process in place: 2"]
    assert "6.00\u00d7 [6.00,\u00a06.00]" in one.text
    assert "6.00\u00d7 [6.00,\u00a06.00]" in sixteen.text
    assert "1.00\u00d7" in rows["sockets-tcp", "a dispatcher, workers: 2"][0].text
    assert "\u00d7" not in rows["sockets-tcp", "a thread a connection"][0].text, "nothing is divided by itself"


def test_a_point_that_is_no_rung_stays_out(two_cores: pagereader.Node) -> None:
    """A handler of 1 us is none: else the first rung would have two rows, or wrong ones."""
    value = rows_of(two_cores, RATE)["sockets-tcp", "a thread a connection"][0].attrs["data-v"]
    assert float(value.split()[0]) == pytest.approx(10_000 * 1.5**2.5, rel=0.05), "the median of six rounds"


def test_what_an_operation_takes_on_each_side(two_cores: pagereader.Node) -> None:
    cpu = rows_of(two_cores, "CPU time an operation, \u00b5s, all sides together")
    switches = rows_of(two_cores, "context switches an operation, all sides together")
    rung = ("sockets-tcp", "clusters that steal: 2")
    assert float(cpu[rung][0].attrs["data-v"]) == pytest.approx(16_000)
    assert "client 4.00, server 12.0" in cpu[rung][0].text
    assert "client 0.500, server 1.50" in switches[rung][0].text


def test_what_has_no_number_says_why(two_cores: pagereader.Node) -> None:
    cell = rows_of(two_cores, RATE)["native-ucx", "clusters that process in place: 2"][1]
    assert "nobody answered" in cell.text
    [whole] = rows_of(two_cores, RATE)["native-ucx", "clusters that steal: 2"]
    assert (whole.text, whole.attrs["colspan"]) == ("nobody stole", "2"), "once, where it is the same in all columns"


def test_what_is_not_here_says_so_once(two_cores: pagereader.Node) -> None:
    name = ("any layer", "two instances on two devices")
    [cell] = rows_of(two_cores, RATE)[name]
    assert cell.text == "an endpoint is given one device"
    assert name not in rows_of(two_cores, say("study", "ladder.context_switches_operation_all"))


def test_published_ratios_need_processors(two_cores: pagereader.Node, tmp_path: Path) -> None:
    assert "here a host has 2" in two_cores.text
    assert "480\u202f000 1/s (seed" in two_cores.text, "the figures themselves stand there in any case"
    assert not any("published" in name for _, name in rows_of(two_cores, RATE))
    unknown = section(tmp_path / "unknown", None)
    assert "nobody counted" in unknown.text
    assert not any("published" in name for _, name in rows_of(unknown, RATE))
    four = rows_of(section(tmp_path / "four", 4), RATE)
    assert ("sockets-tcp", "a dispatcher, workers: 2; published 3.00\u00d7") in four
    assert ("sockets-tcp", "clusters that process in place: 2; published 4.17\u00d7") in four


def test_a_rung_names_figures_that_are_there(tmp_path: Path) -> None:
    shutil.copytree(DARPC, tmp_path / "s")
    document = yaml.safe_load((DARPC / "published.yml").read_text())
    document["ladders"][0]["rungs"][1]["figure"] = "none"
    (tmp_path / "s" / "published.yml").write_text(yaml.safe_dump(document))
    with pytest.raises(BadInputError, match="no figure is called none"):
        published.read(tmp_path / "s")
