# SPDX-License-Identifier: BSD-3-Clause
"""Names that users give: what a part of one offers, '-' and '_' in names of patterns, floors, and one layer's page."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cadge_harness.errors import UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_harness.plan.sweep import read_sweep
from cadge_results.formats.complaint import near_names
from cadge_results.plugins.catalogue import load_yaml
from cadge_results.plugins.layerfile import LayerFile

from .conftest import TINY, WORKLOADS, Answer

Cadge = Callable[..., Answer]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("ucx", "native-ucx"),
        ("UCX", "native-ucx"),
        ("ofi", "native-ofi"),
        ("zmq", "native-zmq"),
        ("mpi", "mpi-p2p"),
        ("tcp", "sockets-tcp"),
        ("shm", "peregrine-shm"),
        ("verbs", "rdma-verbs"),
        ("ucx-native", "native-ucx"),
        ("native_ucx", "native-ucx"),
        ("socket-tcp", "sockets-tcp"),
        ("am-ucxx", "am-ucx"),
    ],
)
def test_what_a_part_of_a_name_offers_first(given: str, first: str) -> None:
    likely = read_catalogue(Checkout(ROOT)).likely
    assert near_names(given, likely)[0] == first
    with pytest.raises(UsageError, match=rf"unknown layer '{given}'; did you mean {first}\b"):
        read_catalogue(Checkout(ROOT)).get(given)


def test_whole_parts_go_before_spelling() -> None:
    assert near_names("udp", ["ucp", "a-udp", "b-udp"]) == ["a-udp", "b-udp"]
    assert near_names("udpp", ["b-tcp", "udp"]) == ["udp"]
    assert near_names("", ["a"]) == near_names("xyz", ["a-b"]) == []
    assert len(near_names("x", [f"x-{number}" for number in range(9)])) == 3


@pytest.mark.parametrize("name", ["one_sided_x", "one-sided-x", "one-sided_x"])
def test_patterns_take_either_sign(name: str, checkout: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    """In the command and in a sweep: its pattern, and what is in focus."""
    source = (ROOT / "harness/patterns/rpc/rpc.pattern.yml").read_text()
    folder = checkout.harness / "patterns/one_sided_x"
    folder.mkdir()
    (folder / "one_sided_x.c").touch()
    (folder / "one_sided_x.pattern.yml").write_text(source)
    answer = cadge("patterns", name, "--json")
    assert (answer.code, json.loads(answer.out)["data"]["name"]) == (0, "one_sided_x"), answer.err
    path = tmp_path / "s.yml"
    focus = f"{{default: 20ms, focus: [{{pattern: {name}, request_bytes: 8B, duration: 30ms}}]}}"
    path.write_text(TINY.replace("pattern: rpc", f"pattern: {name}").replace("{default: 20ms}", focus))
    answer = cadge("plan", "--sweep", str(path), "--testbed", "local", "--json")
    assert answer.code == 0, answer.err


def test_a_new_pattern_may_be_called_with_either_sign() -> None:
    done = subprocess.run(
        ["bash", "ci/new-pattern", "in--cast"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, "'in__cast' is no name" in done.stderr) == (2, True)


def test_a_floor_is_not_called_a_layer(checkout: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    assert checkout
    for words in (("layers", "floor-tcp"), ("plan", "--sweep", "tiny", "--layers", "floor-tcp")):
        answer = cadge(*words)
        assert (answer.code, "floor-tcp is a floor, no layer" in answer.err) == (2, True)
    path = tmp_path / "s.yml"
    path.write_text(TINY + "layers: [a-one, floor-tcp]\n")
    with pytest.raises(UsageError, match=r"s.yml:10:17: layers.1: floor-tcp is a floor, no layer"):
        read_sweep(path, WORKLOADS, ["a-one"])


def test_a_plan_has_layers_and_floors_in_tables_of_their_own(cadge: Cadge) -> None:
    answer = cadge("plan", "--sweep", "smoke", "--layers", "sockets-tcp", "--testbed", "local")
    tables = [block.splitlines() for block in answer.out.split("\n\n")]
    heads = {block[0].split()[0]: [line.split()[0] for line in block[1:]] for block in tables if block}
    assert heads["layer"] == ["sockets-tcp"]
    assert heads["floor"]
    assert all(name.startswith("floor-") for name in heads["floor"])


def test_layers_of_a_sweep_that_are_not_there_are_named_with_their_lines(tmp_path: Path) -> None:
    names = read_catalogue(Checkout(ROOT)).likely
    path = tmp_path / "s.yml"
    for text, said in (
        ("layers: [sockets-tcp, ucx]\n", r"s.yml:10:23: layers.1: unknown layer 'ucx'; did you mean native-ucx,"),
        ("without: tcp\n", r"s.yml:10:10: without.0: unknown layer 'tcp'; did you mean sockets-tcp\?"),
        ("layers: [x-*]\n", r"s.yml:10:10: layers.0: unknown layer 'x-\*'"),
    ):
        path.write_text(TINY + text)
        with pytest.raises(UsageError, match=said):
            read_sweep(path, WORKLOADS, names)
    path.write_text(TINY + "places: nowhere\nlayers: [sockets-tcp, ucx]\n")
    with pytest.raises(UsageError, match="unknown layer 'ucx'") as both:
        read_sweep(path, WORKLOADS, names)
    assert "s.yml:10:9: places" in str(both.value), "a wrong form does not hide it"
    path.write_text(TINY + "layers: ['*-ucx', {layer: native-ofi}]\n")
    assert len(read_sweep(path, WORKLOADS, names)[0].layers) == 2


LAYER_FILES = sorted(path for path in ROOT.glob("layers/*/*.layer.yml") if path.parent.name != "shims")
TYPICAL = [*{path.parent: path for path in LAYER_FILES}.values()]
"""One a folder; of the short form."""


@pytest.mark.parametrize(
    "path",
    sorted(LAYER_FILES, key=lambda path: path not in TYPICAL),
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
@pytest.mark.first(len(TYPICAL))
def test_the_page_of_a_layer_says_what_its_file_says(path: Path, cadge: Cadge) -> None:
    file = load_yaml(path, LayerFile)
    name = f"{file.style}-{file.substrate}"
    answer = cadge("layers", name)
    assert answer.code == 0, answer.err
    words = " ".join(answer.out.split())
    assert max(map(len, answer.out.splitlines())) <= 80
    assert words.startswith(f"{name}: {file.title}")
    beside = [f"{one.ratio[0]:g}" for one in file.beside_native]
    beside += [text for one in file.beside_native for text in (one.command, one.measured)]
    for said in (file.notes, file.licence, *(one.reason for one in file.limits), *beside):
        assert " ".join(said.split()) in words


def test_a_layers_page_as_json(cadge: Cadge) -> None:
    data = json.loads(cadge("layers", "sockets-tcp", "--json").out)["data"]
    assert (data["name"], data["layer"]["style"]) == ("sockets-tcp", "sockets")
