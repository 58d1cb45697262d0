# SPDX-License-Identifier: BSD-3-Clause
"""A study of an application compares points at one load alone, and says over which way each layer went."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
import test_study_application as whole
from test_study_application import PRESS, numbers, rows, said, with_versions

from cadge_analysis.stats import compare, load
from cadge_analysis.study import published
from cadge_analysis.study.views import build
from cadge_results.formats.result import PathFacts
from cadge_study_press.application import Application
from cadge_study_press.ground import through_kernel
from cadge_study_press.model import Models
from cadge_study_press.spec import ApplicationOf

Json = dict[str, Any]


def offering(rate: Callable[[Json, int], float], answered: float = 1.0) -> Callable[[Json, Json, int], None]:
    """Return a hook that makes launches be offered what `rate` says, of which a part is answered."""

    def hook(point: Json, attempt: Json, number: int) -> None:
        whole.by_hand(point, attempt, number)
        known = synthetic.flat(point)
        if known["pattern"] == "press" and attempt["quantities"]:
            synthetic.set_rate(attempt, round(rate(known, number)), 1_000_000_000, "offered")
            synthetic.set_rate(attempt, round(rate(known, number) * answered), 1_000_000_000, "achieved")

    return hook


@pytest.fixture(autouse=True)
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "WORKLOADS", with_versions(synthetic.WORKLOADS))


def page(tmp_path: Path, **changes: Any) -> pagereader.Node:  # noqa: ANN401
    out = tmp_path / "press.html"
    build([whole.make(tmp_path / "campaign", **changes)], PRESS, out)
    return pagereader.read(out.read_text())


def of_shares(known: Json, number: int) -> float:
    """What closed loops of a few tenths of a second lead to: one layer has another one's tenfold, or no one load."""
    if known["layer"] == "am-ucx":
        return 9564
    if known["layer"] == "pm-ucx":
        return 120 * 2**number
    return {"sockets-tcp": 1000, "native-ucx": 1080}[known["layer"]]


def test_points_at_other_loads_are_withheld_with_the_reason(tmp_path: Path) -> None:
    root = page(tmp_path, attempt_hook=offering(of_shares))
    total = rows(root, "processors", "All nodes together")
    assert numbers(total["sockets-tcp", "v0"])[0] is not None
    assert numbers(total["native-ucx", "v0"])[0] is not None, "within a tenth"
    assert "offered 9 564 requests a second, sockets-tcp 1 000" in said(total["am-ucx",][0])
    assert ("pm-ucx", "v0") not in total
    section = said(root.one("section", id="processors"))
    assert "pm-ucx offered 120 to 3 840 requests a second from launch to launch" in section
    assert "offered 9 564" in said(rows(root, "versions", "v1: ")["am-ucx", "within one host, blocking"][0])
    price = rows(root, "price", "\u00b5s a forwarded request")
    assert "sockets-tcp 1 000" in said(price["am-ucx", "v0"][0])
    answer = said(root.one("section", id="answer"))
    assert "am-ucx" not in answer
    assert "points are withheld: they were offered another load, 120 to 9 564" in answer
    assert "am-ucx" not in said(root.one("section", id="hypotheses"))


def test_a_base_at_no_one_load_is_none_for_the_others(tmp_path: Path) -> None:
    """Another layer is, and never the servers that stand outside."""

    def rate(known: Json, number: int) -> float:
        if known["server"] == "nginx":
            return 5000
        return 1000 * 2**number if known["layer"] == "sockets-tcp" else 3000

    total = rows(page(tmp_path, attempt_hook=offering(rate)), "processors", "All nodes together")
    assert numbers(total["am-ucx", "v0"])[0] is not None
    assert "offered 1 000 to 32 000 requests a second from launch to launch" in said(total["sockets-tcp",][0])
    assert ("nginx", "outside base; beside sockets-tcp") not in total


def test_one_node_at_another_load_is_not_subtracted(tmp_path: Path) -> None:
    root = page(tmp_path, attempt_hook=offering(lambda known, _: 1000 if known["nodes"] > 1 else 2000))
    found = rows(root, "processors", "Communication")
    assert "offered 1 000 requests a second, the single node 2 000" in said(found["am-ucx", "v0"][0])
    price = rows(root, "price", "\u00b5s a forwarded request")
    assert "the single node 2 000" in said(price["am-ucx", "v0"][0])


@pytest.mark.parametrize(("answered", "are_there"), [(1.0, True), (0.92, True), (0.8, False)])
def test_a_rate_that_was_given_is_one_load_where_it_was_answered(
    tmp_path: Path, answered: float, are_there: bool
) -> None:
    """What was sent of it differs by chance: of a few requests by more than a tenth."""
    given = tuple(
        {"version": version, "offered_per_s": 200, **more}
        for version, more in (("v0", {}), ("v1", {}), ("v0", {"nodes": 1, "cache_kib": 16384, "connections": 64}))
    )
    hook = offering(lambda _, number: 200 + 10 * number, answered)
    root = page(tmp_path, attempt_hook=hook, given=given, patterns=(("press", 1),))
    total = rows(root, "processors", "All nodes together")
    if are_there:
        assert numbers(total["am-ucx", "v0"])[0] is not None
        assert "200 requests a second" in said(root.one("section", id="answer"))
        assert "withheld" not in said(root.one("section", id="ground"))
    else:
        everyone = "am-ucx, native-ucx, pm-ucx, sockets-tcp"
        assert "offered 200 requests a second, of which 80 % were answered" in said(total[everyone,][0])


def test_the_model_is_fitted_to_given_rates_as_to_shares(tmp_path: Path) -> None:
    """At the usual load to points of several working sets, and to one at all other loads."""
    settings = (
        {"working_percent": 50},
        {"working_percent": 400},
        {"working_percent": 100},
        {"working_percent": 100, "alpha_percent": 60},
    )
    given = tuple({"version": "v0", "offered_per_s": 200, **one} for one in settings)
    loads = tuple({"version": "v0", "offered_per_s": rate, "working_percent": 100} for rate in (80, 320))
    campaign = whole.make(tmp_path / "c", sizes=(48,), given=(*given, *loads), patterns=(("press", 1),))
    data = load.read(campaign)
    spec = ApplicationOf.model_validate_json(json.dumps(published.read(PRESS).own))
    models = Models(Application(compare.compare(data), spec, "*"))
    [points] = [points for subject, points in models.subjects.items() if subject[0] == "sockets-tcp"]
    fitted = {
        (point.values["working_percent"], point.values["offered_per_s"])
        for point, _ in points
        if models._is_fitted_to(point)
    }
    assert fitted == {(50, 200), (400, 200), (100, 80), (100, 320)}
    assert len({seen.load for _, seen in points}) == 3


@pytest.mark.parametrize(
    ("medium", "used", "says"),
    [
        ("network", "tcp; congestion control bbr; TCP_NODELAY on", "yes, its protocols"),
        ("network", "provider tcp;ofi_rxm, domain data0", "yes, its protocols"),
        ("network", "rma_bw#0 am am_bw#0 wireup: tcp/data0; am_send: 0..<egr/short>", "yes, its protocols"),
        ("network", "pml ob1; btl tcp; mtl none", "yes, its protocols"),
        ("network", "udp 198.19.0.11:18600, packets of 1472 bytes", "yes, its protocols"),
        ("network", "xdp 198.19.0.11 on raw0, generic attachment", "yes, its driver, without its protocols"),
        ("network", "am: rc_mlx5/mlx5_0:1", "no, a device's own queues"),
        ("network", "RC queue pair on rxe0 port 1, to GID ::ffff:1, MTU 1024", "no, a device's own queues"),
        ("network", "something new", "not known: the library does not report it"),
        ("network", "not read back: the library is closed", "not known: the library is closed"),
        ("loopback", "unix stream; peer in another process", "yes, its sockets"),
        ("memory", "shared memory, rings of 2048 KiB", "no"),
        ("memory", "am am_bw#0: sysv/memory; rma_bw#0: cma/memory", "no, but for copies of long messages"),
        ("memory", "provider shm, domain shm; disable_cma no", "no, but for copies of long messages"),
        ("memory", "provider shm, domain shm; disable_cma yes", "no"),
        ("process", "", "no"),
        ("unknown", "", "not known: the library does not report it"),
    ],
)
def test_the_kernel_is_in_the_way(medium: str, used: str, says: str) -> None:
    assert through_kernel(PathFacts(medium=medium, as_asked=True, used=used)) == says


def test_the_page_says_which_way_each_layer_went(tmp_path: Path) -> None:
    root = page(tmp_path, places=("between",))
    found = rows(root, "ground", "Path of messages")
    kernel, carried, used, calls, offered = found["am-ucx",]
    assert said(kernel).startswith("yes")
    assert "data0" in said(carried)
    assert said(used)
    assert said(offered) == "1 000"
    assert "data-v" in calls.attrs or "not counted" in said(calls)


def test_versions_are_compared_where_they_were_measured(tmp_path: Path) -> None:
    """Layers at two working sets, the second version at the one further from where layers are ranked."""

    def hook(point: Json, attempt: Json, number: int) -> None:
        whole.by_hand(point, attempt, number)
        known = synthetic.flat(point)
        if (known["version"], known["working_percent"]) == ("v1", 90):
            attempt |= {"status": "failed", "reason_code": "LIBRARY", "reason": "not there", "quantities": {}}

    given = tuple({"version": version, "offered_per_s": 200} for version in ("v0", "v1"))
    root = page(tmp_path, attempt_hook=hook, given=given, sizes=(90, 300), patterns=(("press", 1),))
    found = rows(root, "versions", "v1: ")
    gain = found["am-ucx", "within one host, blocking, working set 300\u202f%"][0]
    assert numbers([gain])[0] == pytest.approx(1 / whole.STEP)
