# SPDX-License-Identifier: BSD-3-Clause
"""`cadge export --format scale`: predictions from a file of fits, which fit is meant, and a machine without SimGrid."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadge_analysis.models import simulate
from cadge_harness.errors import EXIT_NOTHING, EXIT_OK, EXIT_UNFIT, EXIT_USAGE

from .conftest import Answer

Cadge = Callable[..., Answer]
SCALE = ("export", "--format", "scale")


def line(start_ns: float, per_byte_ns: float) -> dict[str, Any]:
    return {"start_ns": {"value": start_ns}, "per_byte_ns": {"value": per_byte_ns}, "off": 0.0}


def fitted(layer: str, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "pattern": "loggp",
        "layer": layer,
        "shims": [],
        "settings": {},
        "place": "between",
        "wait": "poll",
        "choices": {"touch": "none"},
        "launches": 3,
        "messages": 16,
        "sizes_bytes": [1, 64, 4096],
        "model": model,
        "held_out": [
            {"what": "Incast", "points": 3, "median_error": 0.03, "worst_error": -0.2, "worst_at": "fan-in 4"},
        ],
    }


@pytest.fixture
def fits(tmp_path: Path) -> Path:
    piece = {
        "from_bytes": 1,
        "to_bytes": 4096,
        "gap": line(500, 0.25),
        "one_way": line(2700, 0.25),
        "send": line(300, 0),
        "receive": {"refused": "too few sizes"},
    }
    model = {"latency_ns": {"value": 2000}, "pieces": [piece]}
    path = tmp_path / "fits.json"
    refused = fitted("b-two", {"refused": "no line fits"})
    document = {"schema": "cadge.loggp/1", "campaign_id": "c1", "fits": [fitted("a-one", model), refused]}
    path.write_text(json.dumps(document))
    return path


def test_the_closed_form_alone(cadge: Cadge, fits: Path) -> None:
    argv = (*SCALE, "--parameters", str(fits), "--layer", "a-one", "--endpoints", "3,100000", "--no-simulation")
    answer = cadge(*argv, "--traffic", "incast", "--topology", "star", "--bytes", "1B", "--json")
    assert answer.code == EXIT_OK
    data = json.loads(answer.out)["data"]
    assert data["about"] == "a-one between poll (touch=none), campaign c1"
    assert data["notes"] == ["o_r is taken for a part of L: too few sizes"]
    few, many = data["predictions"]
    assert (few["closed_form_ns"], many["closed_form_ns"]) == (2700 + 500, 2700 + 99_998 * 500)
    assert (few["simulated_ns"], few["error"], few["reason"]) == (None, None, "not asked for")


def test_lines_for_people(cadge: Cadge, fits: Path) -> None:
    answer = cadge(*SCALE, "--parameters", str(fits), "--layer", "a-one", "--endpoints", "2", "--no-simulation")
    assert answer.code == EXIT_OK
    assert "messages of 64 B" in answer.out
    assert answer.out.count("not asked for") == 9
    assert "The same parameters beside what was measured" in answer.out
    assert answer.out.splitlines()[-1].split() == ["Incast", "3", "3", "%", "-20", "%", "fan-in", "4"]


def test_what_is_no_network_is_said_to_be_none(cadge: Cadge, fits: Path) -> None:
    fits.write_text(fits.read_text().replace('"place": "between"', '"place": "within"'))
    answer = cadge(*SCALE, "--parameters", str(fits), "--layer", "a-one", "--endpoints", "2", "--no-simulation")
    assert "measured at place within: the link here is a host's memory" in answer.out


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (
            (),
            EXIT_USAGE,
            "several LogGP fits; choose one with --layer, --place, --mode and --choice: a-one between poll",
        ),
        (("--layer", "c-three"), EXIT_NOTHING, "no LogGP fit of c-three; there are: a-one"),
        (("--layer", "b-two"), EXIT_NOTHING, "was refused: no line fits"),
        (("--layer", "a-one", "--topology", "fattree"), EXIT_USAGE, "unknown topology 'fattree'"),
        (("--layer", "a-one", "--endpoints", "1"), EXIT_USAGE, "'1' is no number of endpoints; 2 to 100000"),
        (("--layer", "a-one", "--bytes", "8KiB"), EXIT_USAGE, "8192 bytes: they were fitted from 1 to 4096"),
        (("--layer", "a-one", "--choice", "touch=write+read"), EXIT_NOTHING, "no LogGP fit of a-one write+read"),
        (("--choice", "touch"), EXIT_USAGE, "write it like touch=none"),
        (("--layer", "a-one", "--deadline", "3"), EXIT_USAGE, "3"),
        (("--only", "rpc*"), EXIT_USAGE, "--only is for --format svg and pdf and png"),
        (("-o", "predicted"), EXIT_USAGE, "--format scale is printed"),
    ],
)
def test_what_cannot_be_predicted(cadge: Cadge, fits: Path, more: tuple[str, ...], code: int, said: str) -> None:
    answer = cadge(*SCALE, "--parameters", str(fits), *more)
    assert answer.code == code
    assert said in answer.err.replace("\u202f", "")


def test_a_file_that_is_none(cadge: Cadge, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{")
    for name in ("no.json", "not-there.json"):
        answer = cadge(*SCALE, "--parameters", str(tmp_path / name))
        assert answer.code == EXIT_USAGE
        assert name in answer.err


def test_a_machine_without_simgrid(cadge: Cadge, fits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "PYTHON", Path(sys.executable))  # of the virtual environment
    answer = cadge(*SCALE, "--parameters", str(fits), "--layer", "a-one", "--endpoints", "2")
    assert answer.code == EXIT_UNFIT
    assert "install the package python3-simgrid" in answer.err
    assert "--no-simulation" in answer.err
