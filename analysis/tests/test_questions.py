# SPDX-License-Identifier: BSD-3-Clause
"""The summary matrix: questions, values, ranks and bars, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic

from cadge_analysis import messages, report
from cadge_analysis.judged import judged
from cadge_analysis.page.parts import questions
from cadge_analysis.stats import compare, load
from cadge_analysis.stats.campaign_verdicts import groups_in_order

NBSP, THIN = "\u00a0", "\u202f"
ORDER = (5, 0, 9, 3, 11, 1, 7, 2, 10, 4, 8, 6)  # no round is like the one before
# ns of a round trip at 8 B: the second is told apart from nobody, since its rounds lie on both sides of the first's
TOOK = {"mpi-p2p": 3000, "native-ofi": 1000, "native-ucx": 1000, "rdma-ucx": 6000, "sockets-tcp": 60_000}


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Each layer takes its own time and 10 ns more a round; the floor 500 ns, and a stream's bytes a tenth of that."""
    known = synthetic.flat(point)
    step = 10 * ORDER[number]
    took = 500 if known["kind"] == "floor" else TOOK[known["layer"]]
    if known["layer"] == "native-ofi":
        took += 100 if ORDER[number] in (0, 1, 4, 5, 10, 11) else -100
    if known["pattern"] in ("stream", "flow"):
        attempt |= {"operations": 1000, "bytes": 1_000_000, "elapsed_ns": took * 100}
        synthetic.set_rate(attempt, 1_000_000, took * 100)
        return
    value = took + step + (0 if known["size"] == 8 else 4000)
    if known["kind"] == "floor":  # a byte a nanosecond, so that no copy is quicker than the stream
        value = max(500, known["size"])
    synthetic.set_samples(attempt, [(value, 1979), (value + 50_000, 21)])
    use = attempt["cpu"][0]
    attempt["cpu"] = [
        {**use, "user_ns": 1_000_000, "system_ns": 1_000_000},
        {**use, "user_ns": 500_000, "system_ns": 0},
    ]
    attempt |= {"operations": 2000, "bytes": 16_000, "elapsed_ns": 2_000_000}


def options(**given: Any) -> synthetic.Options:  # noqa: ANN401
    usual: dict[str, Any] = {
        "layers": tuple(TOOK),
        "sizes": (8, 4096, 1 << 20),
        "places": ("within",),
        "waits": ("poll",),
        "patterns": (("rpc", 1), ("stream", 16)),
        "launches": 12,
        "samples": 200,
        "troubles": False,
        "attempt_hook": by_hand,
    }
    return synthetic.Options(**(usual | given))


def page_of(folder: Path, **given: Any) -> pagereader.Node:  # noqa: ANN401
    report.build(synthetic.make(folder / "store", options(**given)).path, folder / "r.html")
    return pagereader.read((folder / "r.html").read_text())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> pagereader.Node:
    return page_of(tmp_path_factory.mktemp("questions"))


def matrix(root: pagereader.Node) -> dict[str, dict[str, pagereader.Node]]:
    """Return the cells of the first table by layer and question, in the order of the page."""
    table = root.one("section", id="questions").all("table")[0]
    rows = table.one("tbody").all("tr")
    return {row.one("th").text: {cell.attrs["data-q"]: cell for cell in row.all("td")} for row in rows}


def test_questions_follow_from_what_was_measured(root: pagereader.Node) -> None:
    heads = root.one("section", id="questions").all("thead")[0].all("th")
    assert [head.own for head in heads] == [
        "layer",
        "RPC 8 B",
        "RPC 4 KiB",
        "RPC 8 B, p99",
        "RPC 8 B, CPU",
        "Stream 1 MiB",
    ]
    assert [head.smalls for head in heads[:2]] == [["sorted by RPC 8 B"], ["p50, round trip"]]


def test_rows_are_sorted_by_result_and_ties_share_a_rank(root: pagereader.Node) -> None:
    found = matrix(root)
    # 1000 ns with and without a swing of 100 ns: equal medians, so by name
    assert list(found) == ["native-ofi", "native-ucx", "mpi-p2p", "rdma-ucx", "sockets-tcp"]
    said = [cells["RPC 8 B"].one("span", class_="said").text for cells in found.values()]
    assert said == ["rank 1, shared by 2 layers:", "rank 1, shared by 2 layers:", "rank 3:", "rank 4:", "rank 5:"]
    chips = [cells["RPC 8 B"].one("i", class_="rank") for cells in found.values()]
    assert [chip.text for chip in chips] == ["1=", "1=", "3", "4", "5"]
    assert [chip.attrs["class"] for chip in chips] == ["rank leads", "rank leads", "rank", "rank", "rank"]
    begins = root.one("section", id="questions").all("tr", class_="begins")
    assert [row.one("th").text for row in begins] == ["mpi-p2p", "rdma-ucx", "sockets-tcp"]


def test_values_intervals_and_the_distance_to_the_floor(root: pagereader.Node) -> None:
    cells = matrix(root)["mpi-p2p"]
    # Launches: 3000, 3010 ... 3110 ns. Median 3055; with 12 launches the third smallest and the third
    # largest, 3020 and 3090, hold it with 96.1 %. Buckets above 2047 ns are 2 ns wide.
    assert cells["RPC 8 B"].one("b").text == "3.06 \u00b5s"
    assert cells["RPC 8 B"].smalls == [f"[3.02,{NBSP}3.09]"]
    # the floor takes 500 ns: 3055 / 500 = 6.11 (of upper ends of buckets 6.112); log(6.112) / log(100) = 39.3 %
    assert cells["RPC 8 B"].one("span", class_="away").text == "6.11\u00d7 floor"
    assert cells["RPC 8 B"].one("span", class_="away").one("i").attrs["style"] == "--w:39%"
    # 21 of 2,000 samples a launch take 50,000 ns more, so each launch's own p99: their median is 53,055 ns
    assert cells["RPC 8 B, p99"].one("b").text == "53.1 \u00b5s"
    assert cells["RPC 8 B, p99"].smalls == [f"[53.0,{NBSP}53.1]"]
    # 2 ms and 0.5 ms for 2,000 operations
    assert cells["RPC 8 B, CPU"].one("b").text == "1.25 \u00b5s"
    assert cells["RPC 8 B, CPU"].smalls == [f"[1.25,{NBSP}1.25]"]
    assert not cells["RPC 8 B, CPU"].all("i", class_="rank"), "no verdict is made of it"
    # 10^6 bytes in 300 us; the floor does it in 50 us, a sixth: log(6) / log(100) = 38.9 %
    assert cells["Stream 1 MiB"].one("b").text == f"3{THIN}330 MB/s"
    assert cells["Stream 1 MiB"].one("span", class_="away").text == "0.167\u00d7 floor"
    assert cells["Stream 1 MiB"].one("span", class_="away").one("i").attrs["style"] == "--w:39%"


def test_the_first_group_is_the_leading_group(tmp_path: Path) -> None:
    comparison = compare.compare(load.read(synthetic.make(tmp_path, options())))
    verdicts = judged(comparison)
    groups = groups_in_order(comparison, verdicts.families, verdicts.groups.keys())
    assert groups.keys() == verdicts.groups.keys()
    for case, found in groups.items():
        assert set(found[0]) == set(verdicts.groups[case].members)
        assert sorted(one for group in found for one in group) == sorted(comparison.data.layers)


def test_ranks_of_groups() -> None:
    names = [load.Series("layer", name, (), ()) for name in "abcdef"]
    a, b, c, d, e, f = names
    assert questions.ranks(((b, a), (c,), (d, e, f))) == {
        b: (1, 2),
        a: (1, 2),
        c: (3, 1),
        d: (4, 3),
        e: (4, 3),
        f: (4, 3),
    }
    assert questions.ranks(()) == {}


def test_bars_end_where_they_should() -> None:
    assert [questions.bar(ratio, more_is_better=False) for ratio in (0.9, 1.0, 10.0, 100.0, 5000.0)] == [
        "0",
        "0",
        "50",
        "100",
        "100",
    ]
    assert [questions.bar(ratio, more_is_better=True) for ratio in (1.5, 1.0, 0.1, 0.0001)] == ["0", "0", "50", "100"]


def test_a_cell_without_a_result_says_why_in_a_word(tmp_path: Path) -> None:
    def broken(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
        by_hand(point, attempt, number)
        if point["subject"]["layer"] == "rdma-ucx" and synthetic.flat(point)["size"] == 8:
            synthetic._spoil(attempt, "DEADLINE", "no progress for 3000 ms")

    root = page_of(tmp_path, attempt_hook=broken, lost=lambda launch: launch["subject"]["layer"] == "mpi-p2p")
    found = matrix(root)
    assert list(found) == ["native-ofi", "native-ucx", "sockets-tcp", "rdma-ucx", "mpi-p2p"]
    failed = found["rdma-ucx"]["RPC 8 B"]
    assert (failed.text, failed.attrs["title"]) == ("failed", "no progress for 3000 ms")
    assert found["rdma-ucx"]["RPC 4 KiB"].one("b").text == "10.1 \u00b5s"
    assert {cell.text for cell in found["mpi-p2p"].values()} == {"not run"}


def test_too_few_launches_rank_nobody(tmp_path: Path) -> None:
    """All layers would share the first rank, and each of them look like a leader."""
    root = page_of(tmp_path, launches=4)
    few = matrix(root)
    assert messages.say("report", "questions.nothing_separated") in root.one("section", id="questions").text
    assert not [rank for cells in few.values() for cell in cells.values() for rank in cell.all("i", class_="rank")]
    assert list(few)[2:] == ["mpi-p2p", "rdma-ucx", "sockets-tcp"], "sorted by value alone"


def test_places_have_tables_of_their_own_and_blocking_folds(tmp_path: Path) -> None:
    root = page_of(tmp_path, places=("within", "between"), waits=("poll", "block"), launches=3, attempt_hook=None)
    section = root.one("section", id="questions")
    assert [head.text for head in section.all("h3")] == [
        "Within one host, polling",
        "Between hosts, polling",
        "Within one host, blocking",
        "Between hosts, blocking",
    ]
    assert [fold.one("h3").text for fold in section.all("details")] == [
        "Within one host, blocking",
        "Between hosts, blocking",
    ]
