# SPDX-License-Identifier: BSD-3-Clause
"""The C histogram against the Python HdrHistogram library, bit for bit."""

import base64
import os
import random
import subprocess
import zlib
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

BUILD = Path(os.environ.get("CADGE_BUILD", Path(__file__).parents[2] / "build"))
TOOL = BUILD / "tests" / "driver-tool_histogram"
LOWEST, HIGHEST, DIGITS = 1, 10**11, 3


def samples(kind: str) -> list[int]:
    """Values of one shape, always the same."""
    rng = random.Random(kind)
    match kind:
        case "empty":
            return []
        case "one":
            return [5]
        case "edges":
            return [0, 1, 2, 2047, 2048, 2049, 4095, 4096, 10**9, HIGHEST - 1, HIGHEST]
        case "few":
            return [*range(1, 8)]
        case "two":
            return [5, 300]
        case "narrow":
            return [rng.randint(300, 400) for _ in range(20000)]
        case "latencies":
            return [max(1, int(rng.lognormvariate(9, 1.5))) for _ in range(20000)]
        case _:
            return [int(10 ** rng.uniform(0, 11)) for _ in range(20000)]


@pytest.mark.parametrize("kind", ["empty", "one", "two", "few", "edges", "narrow", "latencies", "all"])
def test_same_bytes_and_quantiles(kind: str) -> None:
    if not TOOL.exists():
        pytest.skip(f"{TOOL} is not built")
    values = samples(kind)
    reference = HdrHistogram(LOWEST, HIGHEST, DIGITS)
    for value in values:
        reference.record_value(value)
    done = subprocess.run(
        [TOOL], input="\n".join(map(str, values)), capture_output=True, text=True, check=True, timeout=60
    )
    payload, text, squares, quantiles = done.stdout.splitlines()
    expected = zlib.decompress(base64.b64decode(reference.encode())[8:])
    packed = base64.b64decode(text, validate=True)
    assert len(packed) == 8 + int.from_bytes(packed[4:8])
    assert zlib.decompress(packed[8:]) == bytes.fromhex(payload)
    if values:  # the Python library writes one zero count for an empty histogram
        assert bytes.fromhex(payload) == expected
    assert int(squares) == sum(value * value for value in values)
    decoded = HdrHistogram.decode(text)
    assert decoded.get_total_count() == len(values)
    assert [decoded.get_value_at_percentile(p) for p in (50, 99, 99.9)] == [
        reference.get_value_at_percentile(p) for p in (50, 99, 99.9)
    ]
    if values:
        assert [int(q) for q in quantiles.split()] == [reference.get_value_at_percentile(p) for p in (50, 99, 99.9)]
