# SPDX-License-Identifier: BSD-3-Clause
"""What a report says of itself agrees with what it shows: paths, counts, floors, intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pageparts
import pytest
import synthetic

from cadge_analysis import report, words
from cadge_analysis.blocks.model import PageDocument
from cadge_analysis.messages import say
from cadge_analysis.page.parts.compared import attempts, compared
from cadge_analysis.page.parts.method import method
from cadge_analysis.page.parts.model_tables import _folded
from cadge_analysis.page.parts.provenance import _kernel_facts, deck, host_table, own, tidied
from cadge_analysis.page.parts.remarks import _worst
from cadge_analysis.stats import load
from cadge_analysis.stats.launch_facts import launch_facts
from cadge_analysis.stats.load import Dataset
from cadge_analysis.versus.aspects import _of_record
from cadge_analysis.versus.sides import Side
from cadge_results.formats.record import HostKernel

OPTIONS = synthetic.Options(
    layers=("sockets-tcp", "native-ucx"), sizes=(8, 4096, 1 << 20), launches=9, samples=200, troubles=False
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load.read(synthetic.make(tmp_path_factory.mktemp("said"), OPTIONS))


@pytest.fixture(scope="module")
def page(data: Dataset) -> PageDocument:
    return report.page_of(data)


def through(data: Dataset, medium: str, used: str) -> str:
    """Return what the head of a report says of the paths of a campaign whose every path is this."""
    records = []
    for record in data.records:
        result = record.result
        assert result is not None
        path = tuple(one.model_copy(update={"medium": medium, "used": used}) for one in result.path)
        records.append(record.model_copy(update={"result": result.model_copy(update={"path": path})}))
    first = compared(replace(data, records=tuple(records))).facts[0]
    return first.cells[0].spans[-1].text


@pytest.mark.parametrize(
    ("used", "said"),
    [
        ("unix stream; peer in another process", "a local socket"),
        ("PAIR over ipc", "a local socket"),
        ("PAIR over tcp", "the network inside the host"),
        ("udp 127.0.0.1:18600, packets of 65507 bytes", "the network inside the host"),
    ],
)
def test_a_socket_with_a_name_is_no_network(data: Dataset, used: str, said: str) -> None:
    assert f"within: {said}" in through(data, "loopback", used)


def on(data: Dataset, kind: str, cores: tuple[object, ...], *, virtual: str = "kvm") -> str:
    """Return the deck of a campaign on a testbed of this kind, whose hosts say this of their processors."""
    nodes = tuple(
        data.nodes[0].model_copy(update={"host": f"h{at}", "cores": one, "virtualisation": virtual})
        for at, one in enumerate(cores)
    )
    testbed = data.meta.testbed.model_copy(update={"kind": kind, "hosts": tuple(node.host for node in nodes)})
    return deck(replace(data, nodes=nodes, meta=data.meta.model_copy(update={"testbed": testbed})))


def test_the_deck_says_how_many_processors_there_are(data: Dataset) -> None:
    stored = {"logical": 8, "allowed": [0, 1], "physical": 8}
    # the launches are all within h1
    used = "1 of 2 hosts, "
    stated = f"{used}namespaces of one virtual machine with 2 processors. "
    assert stated in on(data, "emulated", (stored, stored))
    assert f"{used}namespaces of one machine with 2 processors. " in on(data, "emulated", (2, 2), virtual="none")
    assert f"{used}4 to 16 processors. " in on(data, "cluster", (4, 16))
    assert "1 host, 4 processors. " in on(data, "local", (4,))
    assert "processors" not in on(data, "cluster", ({"unknown": "not read"}, None))


def test_styles_are_explained_that_have_numbers(page: PageDocument) -> None:
    names = [one.name for one in pageparts.facts(page, "glossary")]
    assert names[-2:] == ["native-\u2026", "sockets-\u2026"]


def test_of_hosts_alike_what_differs_is_told(data: Dataset) -> None:
    first = data.nodes[0]
    raw = {"mtu": 1500, "driver": "veth", "speed": 10000}
    second = first.model_copy(update={"host": "n2", "interfaces": {"data0": {**raw, "mtu": 9000}, "raw0": raw}})
    third = first.model_copy(update={"host": "n3", "interfaces": {"data0": raw}, "kernel": "6.1"})
    table = host_table(replace(data, nodes=(first, second, third, first.model_copy(update={"host": "n4"}))))
    lines = [["".join(span.text for span in cell.spans) for cell in line.cells] for line in table.lines]
    assert len([line for line in lines if line[0] == first.host]) > 10
    as_first = say("report", "provenance.as_first", first=words.isolated(first.host))
    rest, every = say("report", "provenance.rest"), say("report", "provenance.every")
    assert [line for line in lines if line[0] != first.host] == [
        ["n2", rest, as_first],
        ["n2", "interfaces", "data0: (mtu: 9000)"],
        ["n3", rest, as_first],
        ["n3", "kernel", "6.1"],
        ["n3", "interfaces", "raw0: not there"],
        ["n4", every, as_first],
    ]


def facts(page: PageDocument) -> dict[str, str]:
    return {one.name: one.text for one in pageparts.facts(page, "method")}


def test_the_method_says_whether_there_are_floors(data: Dataset, page: PageDocument) -> None:
    assert facts(page)["Floor"] == say("report", "method.floor")
    without = {one.name: one.text for one in method(data.patterns, (), several_ends=False, has_floors=False)}
    assert without["Floor"] == say("report", "method.no_floor")


def test_whose_work_is_compared_is_said_once(data: Dataset) -> None:
    every = launch_facts(data)
    assert own(data, every) == ()
    series = data.layers[0]
    changed = {
        key: tuple(replace(one, file="/b/x.so", adapter_file="/b/x.so") if key[0] == series else one for one in found)
        for key, found in every.items()
    }
    assert own(data, changed) == (series.label,)
    said = {one.name: one.text for one in method(data.patterns, (), several_ends=False, own=(series.label,))}
    assert said["By whom"] == say(
        "report", "method.authors", libraries=say("report", "method.own_library", layers=[series.label])
    )


def test_attempts_of_what_was_measured_twice_are_told_apart(tmp_path: Path, data: Dataset) -> None:
    assert "twice" not in attempts(data)
    twice = load.read(synthetic.make(tmp_path / "twice", replace(OPTIONS, twins=("sockets-tcp",))))
    again = sum(len(cell.samples) for cell in twice.twins if cell.series.kind == "layer")
    assert f"{again:,}".replace(",", "\u202f") + " of them of a layer that was measured twice" in attempts(twice)


def test_no_pattern_is_left_out_that_settled_no_better_than_one_that_is_named() -> None:
    assert list(_worst({"A": 1.0, "B": 1.0, "C": 0.9999, "D": 0.5})) == ["A, B and C: 100\u202f%"]
    assert list(_worst({"A": 0.9, "B": 0.7, "C": 0.5})) == ["A: 90\u202f%", "B: 70\u202f%"]
    assert list(_worst(dict.fromkeys("ABCDE", 1.0))) == ["A, B, C and 2 more: 100\u202f%"]


def test_a_path_is_shown_without_what_its_library_left_empty() -> None:
    assert tidied("amo#1: posix/memory; ") == "amo#1: posix/memory"
    assert tidied("am: sysv/memory; ?: posix/memory; rma: cma/memory; | tcp; ") == (
        "am: sysv/memory; for a use that is not named: posix/memory; rma: cma/memory | tcp"
    )


def test_the_method_tells_of_choices_that_were_planned(data: Dataset) -> None:
    def said(*touched: str) -> str:
        found = method(data.patterns, (), several_ends=False, chosen={("rpc", "touch"): touched})
        return {one.name: one.text for one in found}.get("Ranked by", "")

    assert said("write+read") == "", "no second value to name"
    assert said("write+read", "none") == say(
        "report", "method.ranked", titles=["RPC"], title="touch", value="write+read", others="none"
    )


def test_what_is_known_of_no_size_is_told_once_for_all_layers() -> None:
    rows = [
        (layer, "poll", "touch none", sizes, sign, "")
        for layer in ("a", "b")
        for sizes in ("16 B to 1 KiB", "4 KiB to 1 MiB")
        for sign in ("o_s", "o_r")
    ]
    kept = ("c", "poll", "touch none", "all", "the fit", "no straight piece")
    assert _folded([*rows, kept]) == (
        kept,
        ("a and b", "poll", "touch none", "all", "o_s and o_r", say("report", "model_tables.known_of_none")),
    )


def test_values_of_the_kernel_stand_on_pages(data: Dataset) -> None:
    name = "kernel.net.core.busy_read"
    values = [
        {"host": host, "before": {name: "0"}, "during": {name: "50"}, "after": {name: "50"}} for host in ("h1", "h2")
    ]
    kernel = tuple(HostKernel.model_validate(one) for one in values)
    given = replace(data, records=tuple(record.model_copy(update={"kernel": kernel}) for record in data.records))
    [fact] = _kernel_facts(given)
    assert (fact.name, fact.text) == (
        "Kernel",
        f"{say('report', 'provenance.kernel', name=name, value='50', before='0')}: h1, h2",
    )
    assert not _kernel_facts(data)
    said = dict(_of_record(Side("c", given), given.records[0], given.cells[0]))
    assert (said["settings", f"{name} of h1, read back"], said["settings", f"{name} of h2, before"]) == ("50", "0")
