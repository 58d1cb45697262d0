# SPDX-License-Identifier: BSD-3-Clause
"""OSU's and Intel's MPI benchmarks, where the user has them on PATH: both poll, print means of half a round trip in us.

osu_latency prints two columns, bytes and us. IMB-MPI1 prints bytes, repetitions, us and MB/s (10^6). osu_bw prints
bytes and MB/s (10^6).
"""

from __future__ import annotations

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, messages, positive


def _osu(ask: Ask) -> Commands:
    options = ("-m", f"{ask.bytes}:{ask.bytes}", "-i", str(messages(ask, "memory")))
    return Commands(client=("osu_latency", *options), ranks=True)


def _osu_bw(ask: Ask) -> Commands:
    return Commands(client=("osu_bw", "-m", f"{ask.bytes}:{ask.bytes}", "-W", str(ask.window)), ranks=True)


def _imb(ask: Ask) -> Commands:
    size = ask.bytes.bit_length() - 1  # it takes the logarithm; of another size than a power of two there is no line
    options = ("-msglog", f"{size}:{size}", "-iter", str(messages(ask, "memory")))
    return Commands(client=("IMB-MPI1", "PingPong", *options), ranks=True)


def _column(text: str, size: int, column: int, columns: int) -> float:
    for line in reversed(text.splitlines()):
        words = line.split()
        if len(words) == columns and words[0] == str(size):
            try:
                return positive(float(words[column]), text)
            except ValueError:
                continue
    raise ToolError(f"no line for {size} bytes: {last_words(text)}")


def read_osu(text: str, ask: Ask) -> float:
    """Return the whole mean round trip, in ns."""
    return _column(text, ask.bytes, 1, 2) * 2e3


def read_osu_bw(text: str, ask: Ask) -> float:
    """Return bytes a second."""
    return _column(text, ask.bytes, 1, 2) * 1e6


def read_imb(text: str, ask: Ask) -> float:
    """Return the whole mean round trip, in ns."""
    return _column(text, ask.bytes, 2, 4) * 2e3


_OSU = "OSU Micro-Benchmarks, built with Open MPI, on PATH"
_INTEL = "Intel MPI Benchmarks, built with Open MPI, on PATH"
TOOLS = (
    Tool(
        name="osu_latency", program="osu_latency", package="", source=_OSU,
        statistic="mean", clocked=True, commands=_osu, read=read_osu,
    ),
    Tool(
        name="osu_bw", program="osu_bw", package="", source=_OSU,
        statistic="rate", commands=_osu_bw, read=read_osu_bw, min_bytes=1,
    ),
    Tool(
        name="IMB-MPI1 PingPong", program="IMB-MPI1", package="", source=_INTEL,
        statistic="mean", commands=_imb, read=read_imb, min_bytes=1,
    ),
)  # fmt: skip
