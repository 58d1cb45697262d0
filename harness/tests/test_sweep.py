# SPDX-License-Identifier: BSD-3-Clause
"""Sweep files: vectors, zips, matrices; and complaints that name line, column and the nearest word."""

from __future__ import annotations

from pathlib import Path

import pytest

from cadge_harness.errors import UsageError
from cadge_harness.plan.sweep import find_sweep, idle_values, read_sweep, wanted
from cadge_harness.yamlfile import load
from cadge_results import SweepFile, Workload

from .conftest import WORKLOADS

ROOT = Path(__file__).parents[2]
HEAD = "schema: cadge.sweep/2\ntitle: t\nlaunches: 2\nduration: {default: 25ms}\n"


def sweep_of(text: str, tmp_path: Path) -> SweepFile:
    path = tmp_path / "s.yml"
    path.write_text(HEAD + text)
    return read_sweep(path, WORKLOADS)[0]


def workloads(text: str, tmp_path: Path) -> list[Workload]:
    return [item.workload for item in wanted(sweep_of("places: within\n" + text, tmp_path), WORKLOADS)]


def pairs(text: str, tmp_path: Path) -> list[tuple[int, int, int]]:
    def three(item: Workload) -> tuple[int, int, int]:
        size = item.integer("request_bytes" if item.pattern == "rpc" else "bytes")
        depth = item.integer("depth") if "depth" in item.values else 1
        return size, item.integer("reply_bytes") if item.pattern == "rpc" else size, depth

    return [three(item) for item in workloads(text, tmp_path)]


def test_values_of_several_fields_make_a_matrix(tmp_path: Path) -> None:
    text = "patterns: [{pattern: rpc, request_bytes: [8B, 64B], reply_bytes: [0B, 1KiB], depth: [1, 4]}]\n"
    assert len(set(pairs(text, tmp_path))) == 8


def test_zip_advances_fields_together(tmp_path: Path) -> None:
    text = (
        "patterns: [{pattern: rpc, request_bytes: [8B, 64B], reply_bytes: [1B, 2B], depth: [1, 4], "
        "zip: [[request_bytes, reply_bytes]]}]\n"
    )
    assert pairs(text, tmp_path) == [(8, 1, 1), (8, 1, 4), (64, 2, 1), (64, 2, 4)]
    with pytest.raises(UsageError, match="request_bytes has 2, reply_bytes has 1"):
        pairs(text.replace("[1B, 2B]", "[1B]"), tmp_path)


def test_vectors_and_the_reply_that_is_the_same(tmp_path: Path) -> None:
    text = "vectors: {few: [0B, 1B]}\npatterns: [{pattern: rpc, request_bytes: few}, {pattern: pingpong, bytes: few}]\n"
    assert pairs(text, tmp_path) == [(0, 0, 1), (1, 1, 1)] * 2


def test_what_is_named_twice_is_made_once(tmp_path: Path) -> None:
    text = "patterns: [{pattern: rpc, request_bytes: [8B, 8B]}, {pattern: rpc, request_bytes: 8 B, reply_bytes: 8B}]\n"
    assert pairs(text, tmp_path) == [(8, 8, 1)]


def test_streams_and_one_sided_operations(tmp_path: Path) -> None:
    text = (
        "patterns:\n- {pattern: stream, bytes: 1MiB, depth: [2, 4]}\n"
        "- {pattern: onesided, bytes: [8B, 64B], operation: [put, fetch_add], target: [active, passive]}\n"
    )
    found = workloads(text, tmp_path)
    assert [(item["bytes"], item["depth"]) for item in found[:2]] == [(2**20, 2), (2**20, 4)]
    assert sorted((item["operation"], item["bytes"], item["target"]) for item in found[2:]) == sorted(
        [
            *(("put", size, target) for size in (8, 64) for target in ("active", "passive")),
            ("fetch_add", 8, "active"),
            ("fetch_add", 8, "passive"),
        ]
    )


def test_buffers_are_prepared_for_one_operation_at_a_time(tmp_path: Path) -> None:
    text = (
        "patterns:\n- {pattern: onesided, bytes: 8B, operation: put, depth: [1, 4], spread: [0B, 1MiB], "
        "registration: [library, warm, cold]}\n"
    )
    found = workloads(text, tmp_path)
    assert sorted((one["registration"], one["depth"], one["spread"]) for one in found) == [
        ("cold", 1, 0),
        *(("library", depth, spread) for depth in (1, 4) for spread in (0, 1 << 20)),
        ("warm", 1, 0),
    ]


def test_a_buffer_that_is_sent_from_is_not_written(tmp_path: Path) -> None:
    """The default is to write, so that whoever wants one buffer for all messages has to say that none is touched."""
    head = "patterns:\n- {pattern: stream, bytes: 8B, buffers: "
    found = workloads(f"{head}[same, rotated], touch: [none, write+read]}}\n", tmp_path)
    made = {(item["buffers"], item["touch"]) for item in found}
    assert made == {("same", "none"), ("rotated", "none"), ("rotated", "write+read")}
    with pytest.raises(UsageError, match="stream has none of these combinations"):
        workloads(f"{head}same}}\n", tmp_path)


def test_a_value_that_no_combination_has_is_told(tmp_path: Path) -> None:
    text = "places: within\npatterns:\n- {pattern: stream, bytes: 8B, buffers: [same, rotated], depth: [1, 4]}\n"
    assert list(idle_values(sweep_of(text, tmp_path), WORKLOADS)) == [
        "stream has no combination of this sweep with buffers same: it is measured nowhere"
    ]
    text = text.replace("depth", "touch: [none, write+read], depth")
    assert not list(idle_values(sweep_of(text, tmp_path), WORKLOADS))


@pytest.mark.parametrize("path", sorted((ROOT / "harness/sweeps").glob("*.yml")), ids=lambda path: path.stem)
def test_our_own_sweeps_measure_all_that_they_list(path: Path) -> None:
    assert not list(idle_values(read_sweep(path, WORKLOADS)[0], WORKLOADS))


SHARES = {"knee", "load", "generator", "selftest-stall"}
"""Sweeps that offer each layer shares of its own closed loop: where its own maximum is the question."""


@pytest.mark.parametrize("path", sorted((ROOT / "harness/sweeps").glob("*.yml")), ids=lambda path: path.stem)
def test_layers_are_offered_one_rate_where_they_are_to_be_ranked(path: Path) -> None:
    sweep = read_sweep(path, WORKLOADS)[0]
    rules = {name: one.one_load for name, one in WORKLOADS.patterns.items() if one.one_load is not None}
    given = [
        bool(entry.parameters.get(rules[entry.pattern].given)) for entry in sweep.patterns if entry.pattern in rules
    ]
    assert path.stem in SHARES or all(given)
    assert path.stem != "load" or any(given)


def test_places_and_waits_of_a_pattern_go_before_the_sweep_s(tmp_path: Path) -> None:
    text = "waits: [poll, block]\npatterns: [{pattern: rpc, request_bytes: 8B, waits: block, places: between}]\n"
    assert [(item.place, item.wait) for item in wanted(sweep_of(text, tmp_path), WORKLOADS)] == [("between", "block")]


GOOD = "patterns:\n- {pattern: rpc, request_bytes: 8B}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "patterns:\n- {pattern: rpx, request_bytes: 8B}\n",
            r"s.yml:6:13: patterns.0.pattern: 'rpx' is not allowed; did you mean rpc\? For example: pattern: rpc",
        ),
        (
            "patterns:\n- {pattern: rpc, requst: 8B}\n",
            r"s.yml:6:18: patterns.0.requst: rpc has no parameter requst; did you mean request_bytes\?",
        ),
        (
            "patterns:\n- {pattern: rpc, request_bytes: 8}\n",
            r"s.yml:6:33: patterns.0.request_bytes: 8 has no unit; a size is written",
        ),
        (
            "patterns:\n- {pattern: rpc, request_bytes: 4KB}\n",
            r"s.yml:6:33: .*did you mean KiB \(1024\) or kB \(1000\)\?",
        ),
        (
            "patterns:\n- {pattern: rpc, bytes: 8B}\n",
            r"s.yml:6:18: patterns.0.bytes: rpc has no parameter bytes; did you mean request_bytes or reply_bytes\?",
        ),
        ("patterns:\n- {pattern: rpc}\n", "rpc needs request_bytes"),
        ("patterns:\n- {pattern: rpc, request_bytes: many}\n", "no vector is called 'many'; vectors here: none"),
        ("patterns:\n- {pattern: onesided, bytes: 8B}\n", "onesided needs operation"),
        (
            "patterns:\n- {pattern: rpc, request_bytes: 8B, depth: 0}\n",
            "patterns.0.depth: 0 is less than the minimum of 1 op",
        ),
        (
            "patterns:\n- {pattern: rpc, request_bytes: 8B, depth: [1, 8192]}\n",
            r"s.yml:6:44: patterns.0.depth: 8192 is more than the maximum of 4096 operations",
        ),
        ("patterns:\n- {pattern: rpc, request_bytes: same}\n", "this one does not"),
        ("patterns:\n- {pattern: rpc, request_bytes: 8B, depth: deep}\n", "'deep' is not a whole number"),
        ("patterns:\n- {pattern: rpc, request_bytes: []}\n", "at least one value is needed"),
        ("patterns:\n- {pattern: onesided, bytes: 8B, operation: pot}\n", r"'pot' is not allowed; did you mean put\?"),
        (
            "patterns:\n- {pattern: onesided, bytes: 64B, operation: fetch_add}\n",
            "s.yml:6:3: patterns.0: onesided has none of these combinations",
        ),
        (
            "patterns:\n- {pattern: onesided, bytes: 8B, operation: put, depth: 4, registration: cold}\n",
            "s.yml:6:3: patterns.0: onesided has none of these combinations",
        ),
        (
            GOOD.replace("}", ", zip: [[request_bytes, depth]]}"),
            "s.yml:6:3: patterns.0: .*zip names parameters that have values here",
        ),
        (GOOD + "seed: -1\n", "s.yml:7:7: seed: "),
        (GOOD + "plases: within\n", r"s.yml:7:1: plases: unknown key; did you mean places\?"),
        (
            GOOD + "places: outside\n",
            r"s.yml:7:9: places: must be one of .*, not 'outside'; for example: places: \[within, between\]",
        ),
        (GOOD + "waits: blok\n", r"did you mean block\?"),
        (GOOD + "budget: 300\n", "s.yml:7:9: budget: 300 has no unit; a duration is written like 250ms or 5min"),
        (GOOD + "seed: 1\nseed: 2\n", "s.yml:8:1: seed is given twice"),
        (GOOD + "layers: [a, b\n", r"s.yml:8:1: malformed YAML: expected ',' or ']'"),
        (GOOD + "  bad: indent\n", r"s.yml:7:3: malformed YAML: "),
        (GOOD + "seed: !!python/object:x 1\n", r"s.yml:7:7: the tag .* is not allowed"),
        (GOOD + "layers: &x [*x]\n", "an alias contains itself"),
    ],
)
def test_complaints(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        sweep_of(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.yml:1:1: the file is empty"),
        ("[]", "s.yml:1:1: schema: must be cadge.sweep/2"),
        ("schema: cadge.plan/1\n", r"schema is 'cadge.plan/1', expected cadge.sweep/2"),
        ("schema: cadge.sweep/1\n", "s.yml: written as cadge.sweep/1; this cadge reads version 2; cadge 0.1 reads it"),
        (
            HEAD.replace("25ms}", "25ms, focus: [{pattern: rpc, request: 8B, duration: 1s}]}") + GOOD,
            "no parameter request",
        ),
        ("schema: cadge.sweep/3\n", "s.yml: written as cadge.sweep/3 by a newer cadge"),
        (HEAD.replace("25ms", "19ms") + GOOD, "19ms is too short; a point is measured for at least 20ms"),
        (HEAD.replace("25ms", "25ms, least: 30ms") + GOOD, "least is longer than default"),
        (HEAD.replace("launches: 2", "") + GOOD, "launches is missing, or looks in its place"),
        (HEAD.replace("launches: 2", "looks: []") + GOOD, r"one look is no sequence: name several, as in \[9, 12"),
        (HEAD.replace("launches: 2", "looks: [9, 9]") + GOOD, "looks are numbers of launches that rise"),
        (HEAD.replace("launches: 2", "looks: [9, 1200]") + GOOD, "numbers of launches from 1 to 1000"),
        (HEAD.replace("launches: 2", "looks: 9, 12") + GOOD, "looks: "),
        (HEAD + "looks: [9, 12]\n" + GOOD, "launches: 2 and looks, of which the first is 9: leave launches out"),
    ],
)
def test_wrong_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_sweep(path, WORKLOADS)


def test_a_baseline_is_a_layer_of_the_sweep(tmp_path: Path) -> None:
    path = tmp_path / "s.yml"

    def read(text: str) -> SweepFile:
        path.write_text(HEAD + GOOD + text)
        return read_sweep(path, WORKLOADS, ["native-ucx", "pm-ucx", "sockets-tcp"])[0]

    assert read("baseline: sockets-tcp\nsame_within: 2.5%\n").same_within == 2.5
    lent = 'layers: [native-*, {layer: pm-ucx, shims: delay, settings: {"b": 2, "a": 1}}]\n'
    assert read(f"{lent}baseline: native-ucx\n").baseline == "native-ucx"
    assert read(f"{lent}baseline: pm-ucx + delay (a=1, b=2)\n").layers[1].label == "pm-ucx + delay (a=1, b=2)"
    for text, message in (
        ("baseline: socket-tcp\n", r"s.yml:7:11: baseline: 'socket-tcp' is no layer .*; did you mean sockets-tcp\?"),
        ("without: [sockets-tcp]\nbaseline: sockets-tcp\n", r"s.yml:8:11: baseline: 'sockets-tcp' is no layer"),
        (
            f"{lent}baseline: pm-ucx\n",
            r"s.yml:8:11: baseline: 'pm-ucx' is no layer of this sweep; did you mean pm-ucx \+ delay",
        ),
        ("baseline: ' '\n", r"s.yml:7:11: baseline: ' ' is no layer of this sweep; known: native-ucx"),
        ("same_within: 5\n", r"s.yml:7:14: same_within: 5 is not a share; write it like 5%"),
        ("same_within: 0%\n", r"s.yml:7:14: same_within: must be a share in percent above 0, not '0%'"),
    ):
        with pytest.raises(UsageError, match=message):
            read(text)


def test_shipped_sweeps_with_tcp_at_all_places_are_judged_against_it() -> None:
    """But for one of every layer in which nothing runs over it."""
    layers = [f"{file.parent.name}-{file.name.partition('.')[0]}" for file in ROOT.glob("layers/*/*.layer.yml")]
    for path in sorted(ROOT.glob("harness/sweeps/*.yml")):
        sweep, _ = read_sweep(path, WORKLOADS, layers)
        labels = {entry.label for entry in sweep.layers if entry.places is None}
        has_tcp = not sweep.layers or "sockets-tcp" in labels
        if sweep.pairs != "first":
            assert sweep.baseline is None, "hosts are compared there, not layers"
        elif not sweep.layers and {entry.pattern for entry in sweep.patterns} == {"onesided"}:
            assert sweep.baseline == "rdma-ucx", path.name
        else:
            assert sweep.baseline == ("sockets-tcp" if has_tcp else None), path.name


FIRST_LOOKS = {"health", "quick", "smoke", "press-smoke", "selftest-find", "selftest-quiet"}
"""Sweeps whose numbers are looked at or checked, and that nobody asks for verdicts; `cadge plan` says so."""


@pytest.mark.parametrize("path", sorted((ROOT / "harness/sweeps").glob("*.yml")), ids=lambda path: path.stem)
def test_shipped_sweeps_have_launches_enough_for_verdicts(path: Path) -> None:
    """Nine decide a family of any size where a tenth of it differs (plan_power.py)."""
    sweep = read_sweep(path, WORKLOADS)[0]
    first = sweep.looks[0] if sweep.looks else sweep.launches
    assert (first >= 9) == (path.stem not in FIRST_LOOKS)
    assert first < 6 or first >= 9


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        find_sweep("./none.yml", tmp_path)
    (tmp_path / "smoke.yml").write_text("")
    with pytest.raises(UsageError, match=r"unknown sweep 'smok'; did you mean smoke\?"):
        find_sweep("smok", tmp_path)
    (tmp_path / "latin.yml").write_bytes(b"title: \xff\n")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        read_sweep(tmp_path / "latin.yml", WORKLOADS)
    with pytest.raises(UsageError, match="cannot be read"):
        read_sweep(tmp_path, WORKLOADS)


def test_yaml_is_read_as_json_would_be() -> None:
    raw, marks = load("a: yes\nb: 2026-11-21\nc: 0x10\nd: [1, 1.5, null, true, '1']\n", source="x")
    assert raw == {"a": "yes", "b": "2026-11-21", "c": "0x10", "d": [1, 1.5, None, True, "1"]}
    assert marks.values["d", 3] == (4, 19)
    assert marks.keys[("d",)] == (4, 1)
