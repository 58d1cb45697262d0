# SPDX-License-Identifier: BSD-3-Clause
"""A study of an application: processors' time, communication, prices, versions, claims; with numbers made by hand."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pagereader
import pytest
import synthetic
import yaml

from cadge_analysis.errors import BadInputError
from cadge_analysis.messages import say
from cadge_analysis.study import plugin, published
from cadge_analysis.study.views import build
from cadge_results import Campaign, PatternFile, Workloads
from cadge_study_press.application import rank_correlation

PRESS = Path(__file__).parents[1] / "studies" / "press"
US = 1000
REQUESTS = 1000
TAKES = {"sockets-tcp": 30, "am-ucx": 50, "pm-ucx": 70, "native-ucx": 40}
"""Microseconds of all nodes, of the first version."""
CALLS = {"sockets-tcp": (40, 60), "am-ucx": (30, 50), "pm-ucx": (100, 140), "native-ucx": (10, 30)}
"""Of both ends of a call with the short reply and with the long one."""
ALONE = 10
STEP = 0.8
FORWARDED = 50.0
FILE = 4898
"""Half way between replies of 48 and of 9748 bytes."""


def with_versions(workloads: Workloads) -> Workloads:
    """Return the patterns with the versions of the application, whether its own file has them yet or not."""
    document = workloads.file("press").to_object()
    values = [f"v{number}" for number in range(6)]
    document["parameters"].setdefault(
        "version", {"title": "version", "type": "choice", "values": values, "default": "v0"}
    )
    return replace(
        workloads, patterns={**workloads.patterns, "press": PatternFile.from_object(document, source="press")}
    )


def counts_of(known: dict[str, Any]) -> dict[str, float]:
    """Half of all requests are forwarded, with a message each way, and one of ten messages is a credit."""
    several = known["nodes"] > 1
    messages = {"forward_messages": 0.5, "file_messages": 0.5, "credit_messages": 0.1} if several else {}
    return {
        "hit": 100.0,
        "forwarded": FORWARDED if several else 0.0,
        "caching_messages": 0.0,
        "load_messages": 0.0,
        "message_bytes": 0.5 * FILE + 0.6 * 48 if several else 0.0,
        "copied_bytes": 10_000.0 / 2 ** int(known["version"][1]),
        "wakeups": 1.0,
        "notify_messages": 0.4 if several and known["version"] != "v0" else 0.0,
        **messages,
    }


def by_hand(point: dict[str, Any], attempt: dict[str, Any], number: int) -> None:
    """Every round takes half as much again as the one before: only those of one round show a factor."""
    known = synthetic.flat(point)
    slower = 1.5**number
    if known["pattern"] == "press":
        took = TAKES[known["layer"]] * STEP ** int(known["version"][1]) if known["nodes"] > 1 else ALONE
        attempt["quantities"] = {name: [{"endpoint": 0, "value": value}] for name, value in counts_of(known).items()}
        synthetic.set_samples(attempt, [(round(100 * US * slower), REQUESTS)], "response")
        synthetic.set_rate(attempt, 1000, 1_000_000_000, "offered")
        sides = [5 * US, took * US]
    else:
        took = CALLS[known["layer"]][known["reply_bytes"] > 48]
        synthetic.set_samples(attempt, [(took * US, REQUESTS)])
        sides = [took * US / 2, took * US / 2]
    attempt |= {"operations": REQUESTS, "elapsed_ns": 1_000_000_000}
    for side, each in enumerate(sides):
        attempt["cpu"][side] |= {"user_ns": round(each * REQUESTS * slower), "system_ns": 0}
    if known.get("server") == "nginx":
        attempt["cpu"][1]["user_ns"] //= 2
        for name in ("forward_messages", "message_bytes", "copied_bytes"):
            del attempt["quantities"][name]
        if known["layer"] != "sockets-tcp":
            attempt |= {"status": "failed", "reason_code": "LIBRARY", "reason": "only over TCP", "quantities": {}}
    if known["layer"] == "pm-ucx" and known.get("version") == "v1":
        attempt |= {"status": "failed", "reason_code": "LIBRARY", "reason": "no writes", "quantities": {}}


def make(root: Path, **changes: Any) -> Campaign:  # noqa: ANN401
    given = (
        {"version": "v0"},
        {"version": "v1"},
        {"version": "v3"},
        {"version": "v0", "alpha_percent": 60},
        {"version": "v0", "server": "nginx"},
        {"version": "v0", "nodes": 1, "cache_kib": 16384, "connections": 64},
        {"version": "v0", "nodes": 1, "cache_kib": 16384},
        {"reply_bytes": 48},
        {"reply_bytes": 9748},
    )
    options: dict[str, Any] = {
        "layers": tuple(TAKES),
        "sizes": (48, 100),
        "places": ("within",),
        "waits": ("block",),
        "patterns": (("press", 1), ("rpc", 1)),
        "given": given,
        "roles": ("client", "node"),
        "attempt_hook": by_hand,
        "floors": False,
        "troubles": False,
    }
    return synthetic.make(root, synthetic.Options(**(options | changes)))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "press.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "WORKLOADS", with_versions(synthetic.WORKLOADS))
        build([make(tmp_path_factory.mktemp("application"))], PRESS, out)
    return out


@pytest.fixture(scope="module")
def root(path: Path) -> pagereader.Node:
    return pagereader.read(path.read_text())


def said(node: pagereader.Node) -> str:
    return " ".join(node.text.split())


def rows(root: pagereader.Node, section: str, table: str) -> dict[tuple[str, ...], list[pagereader.Node]]:
    """Return the cells of the table of a section whose title begins so, by what heads each row."""
    found = {}
    regions = root.one("section", id=section).all("div", role="group")
    region, *_ = [one for one in regions if one.attrs["aria-label"].startswith(table)]
    for row in region.one("tbody").all("tr"):
        head = row.one("th")
        found[(" ".join(head.own.split()), *head.smalls)] = row.all("td")
    return found


def numbers(cells: list[pagereader.Node]) -> list[float | None]:
    return [float(cell.attrs["data-v"].split()[0]) if "data-v" in cell.attrs else None for cell in cells]


MIDDLE = (1.5**2 + 1.5**3) / 2
"""Six rounds: the middle of the third and the fourth."""


def test_processors_time_is_that_of_the_nodes(root: pagereader.Node) -> None:
    found = rows(root, "processors", "All nodes together")
    assert numbers(found["am-ucx", "v0"]) == pytest.approx([50 * US * MIDDLE] * 2), "without the client's"
    assert numbers(found["am-ucx", "v1"]) == pytest.approx([40 * US * MIDDLE] * 2)
    assert ("pm-ucx", "v0") in found
    assert "no writes" in said(found["pm-ucx",][0]), "its v1, which has no number, says why"


def test_servers_that_are_not_ours_stand_beside_and_are_compared_with_no_node_of_ours(root: pagereader.Node) -> None:
    outside = ("nginx", "outside base; beside sockets-tcp")
    total = rows(root, "processors", "All nodes together")
    assert numbers(total[outside]) == pytest.approx([15 * US * MIDDLE] * 2)
    assert "only over TCP" in said(total["nginx",][0])
    assert "no single node" in said(rows(root, "processors", "Communication")[outside][0])
    counted = rows(root, "counts", "Counts a request")
    assert "not counted" in said(counted[outside][0])
    assert numbers(counted["sockets-tcp", "v0"])[0] == pytest.approx(0.5)
    claims = root.one("section", id="hypotheses").text
    assert "nginx" not in claims, "nothing of a layer is claimed of it"


def test_communication_is_the_difference_to_one_node_of_the_same_round(root: pagereader.Node) -> None:
    found = rows(root, "processors", "Communication")
    assert numbers(found["am-ucx", "v0"]) == pytest.approx([40 * US * MIDDLE] * 2)
    assert "80 % of it" in said(found["am-ucx", "v0"][0])
    # the exponent of 60 % has no single node
    title = "Communication, \u00b5s a request, within one host, blocking: one"
    other = rows(root, "processors", title)
    assert "no single node" in said(other["am-ucx", "v0"][0])


def test_the_price_stands_beside_the_microbenchmark_at_the_files_mean_length(root: pagereader.Node) -> None:
    found = rows(root, "price", "\u00b5s a forwarded request")
    price, micro, ratio, size = numbers(found["am-ucx", "v0"])
    assert price == pytest.approx(80 * US * MIDDLE)
    assert micro == pytest.approx(40 * US * MIDDLE), "half way between 30 and 50"
    assert ratio == pytest.approx(2.0)
    assert size == pytest.approx(FILE)


def test_hits_and_forwarded_requests_stand_beside_the_rule(root: pagereader.Node) -> None:
    [cells] = [cells for head, cells in rows(root, "hits", "Shares of requests").items() if head[0].startswith("48")]
    hits, kept, mass, forwarded, rule, of_held, implied = numbers(cells)
    assert (hits, kept, mass, forwarded) == (100, 100, 100, 50)
    assert (rule, of_held) == (75, 75)
    assert implied == pytest.approx(100 - 50 * 4 / 3)


def test_a_version_is_divided_into_the_one_before_it(root: pagereader.Node) -> None:
    found = rows(root, "versions", "v1: ")
    gain, _, messages, silent, puts, copied = found["am-ucx", "within one host, blocking"]
    assert "1.25\u00d7[1.25, 1.25]" in said(gain)
    assert said(messages) == "1.10 \u2192 1.50"
    assert said(silent) == "1.10 \u2192 1.10"
    assert "not counted" in said(puts)
    assert said(copied) == "10 000 \u2192 5 000"
    assert ("pm-ucx", "within one host, blocking") not in found
    assert "v2, v3, v4, v5" in root.one("section", id="versions").text, "v3 was measured, but not beside v2"


def test_a_factor_that_nobody_measured_says_so(root: pagereader.Node) -> None:
    found = rows(root, "factors", "Without it")
    heads = [head[0] for head in found]
    assert heads[:2] == ["link rate", "processors' overhead"]
    assert "no layer has the setting link.rate" in said(next(iter(found.values()))[0])
    remote = [cells for head, cells in found.items() if head[0] == "remote writes" and "am-ucx" in head[1]]
    assert numbers(remote[0])[0] == pytest.approx(1 / STEP**3)
    assert "not measured" in said(next(cells for head, cells in found.items() if head[0] == "zero-copy")[0])


def test_claims(root: pagereader.Node) -> None:
    found = {head[0]: cells for head, cells in rows(root, "hypotheses", "Hypotheses").items()}
    ranking, versions, far_below = found.values()
    # application: tcp, native, am, pm; calls of about 5 KB: native 20, am 40, tcp 50, pm 120
    assert "within one host, 100 %: 0.4 of 4 layers" in said(ranking[2])
    assert said(ranking[-1]) == "does not hold"
    assert said(versions[-1]) == "holds"
    assert "v1 am-ucx" in said(versions[1])
    # calls of native-ucx take 2.5 times less than those of sockets-tcp, and the application more
    assert "native-ucx v0 within one host" in said(far_below[1])
    # those of am-ucx 1.25 times less, and its v3 saves 1.17 times: more than half of that
    assert "am-ucx v3 within one host" in said(far_below[2]), "against it"
    assert said(far_below[-1]) == say("study", "hypotheses.depends_layer_size")


def test_the_model_says_why_there_is_none(root: pagereader.Node) -> None:
    found = rows(root, "model", "What was fitted")
    assert "the model has 4 costs, and 0 of the points" in said(next(iter(found.values()))[0])
    assert "nothing is predicted" in root.one("section", id="further").text


def test_a_campaign_without_the_application_has_none_of_this(tmp_path: Path) -> None:
    campaign = make(tmp_path / "c", patterns=(("rpc", 1),), given=({"reply_bytes": 48},), layers=("sockets-tcp",))
    built = build([campaign], PRESS, tmp_path / "page.html")
    assert not built.has_ours
    assert 'id="processors"' not in (tmp_path / "page.html").read_text()


def test_ranks() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 1, 2], [5, 5, 9]) == pytest.approx(1), "ties share a rank"
    assert rank_correlation([1, 2], [1, 2]) is None
    assert rank_correlation([3, 3, 3], [1, 2, 3]) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sections": {}}, "sections: answer is missing"),
        ({"factors": [{"name": "f", "version_on": "v9", "version_off": "v0", "absent": "a"}]}, "no version v9"),
    ],
)
def test_what_the_study_names_has_to_be_there(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    document = yaml.safe_load((PRESS / "published.yml").read_text())
    document["own"] |= change
    folder = tmp_path / "press"
    shutil.copytree(PRESS, folder)
    (folder / "published.yml").write_text(yaml.safe_dump(document))
    with pytest.raises(BadInputError, match=why):
        plugin.load_own(folder, published.read(folder))
