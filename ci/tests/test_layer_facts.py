# SPDX-License-Identifier: BSD-3-Clause
"""ci/layer_facts.awk, which reads layer files without a YAML parser, reads what a YAML parser does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cadge_results.plugins.catalogue import load_yaml
from cadge_results.plugins.layerfile import LayerFile

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "layers").glob("*/*.layer.yml"))


def facts(path: Path) -> list[str]:
    """Return what the script prints of a layer file."""
    command = ["awk", "-f", ROOT / "ci/layer_facts.awk", path]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}-{path.name.split('.')[0]}" for path in FILES])
def test_what_is_read_of_each_layer_file(path: Path) -> None:
    layer = load_yaml(path, LayerFile)
    limits = [each.when for each in layer.limits if each.when.min_bytes is not None]
    assert facts(path) == [
        f"file={path}",
        f"style={layer.style}",
        f"substrate={layer.substrate}",
        f"library={layer.library}",
        f"rpc={layer.rpc}",
        f"launcher={layer.launcher}",
        f"reliable={str(layer.reliable).lower()}",
        f"places={' '.join(layer.places)}",
        *(
            f"min_bytes={when.place or 'any'} {when.wait or 'any'} {when.min_bytes}"
            for when in limits
            if when.pattern is None and not when.parameters
        ),
    ]


def test_other_ways_to_write_the_same(tmp_path: Path) -> None:
    path = tmp_path / "foo.layer.yml"
    path.write_text(
        """# TODO: a comment
title: 'TODO'
style: am # a comment
substrate: "foo"
library: >-
  Two
  words
notes: "no TODO at its beginning"
places:
  - within
  - between
limits:
  - when:
      place: between
      wait: block
      min_bytes: 10
    reason: "min_bytes: 3, pattern: none"
  - {reason: "pattern: x", when: {min_bytes: 7}}
  - {when: {min_bytes: 5, pattern: rpc}, reason: "of one pattern"}
  - {when: {parameters: {depth: 1}, min_bytes: 5}, reason: "of one value"}
known_faults:
  - {test: peer_dies, place: within, reason: "min_bytes: 4"}
""",
        encoding="utf-8",
    )
    assert facts(path) == [
        f"file={path}",
        "style=am",
        "substrate=foo",
        "library=Two words",
        "rpc=",
        "launcher=direct",
        "reliable=true",
        "places=within between",
        "min_bytes=between block 10",
        "min_bytes=any any 7",
        "todo=title",
    ]
