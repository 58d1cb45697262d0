# SPDX-License-Identifier: BSD-3-Clause
"""OSU's and Intel's MPI benchmarks, where the user has them on PATH: both poll, print means of half a round trip in us.

osu_latency prints two columns, bytes and us, with -z (from 7.4 on) also quantiles, of which the second column after the
bytes is the median. osu_get_latency and osu_put_latency print whole operations. IMB-MPI1 prints bytes, repetitions, us
and MB/s (10^6); its makefile asks for -O0. osu_bw prints bytes and MB/s (10^6).
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import Ask, Commands, Tool, ToolError, last_words, messages, positive


def _osu(command: tuple[str, ...], ask: Ask) -> Commands:
    count = messages(ask, "memory", least=2000) * _TIMES
    options = ("-m", f"{ask.bytes}:{ask.bytes}", "-i", str(count), "-x", str(count // 10))
    return Commands(client=(*command, *options), ranks=True)


_TIMES = 4
"""So many times the usual messages: MPI begins and ends for longer than these take, and waits for processors then."""


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


def read_osu_median(text: str, ask: Ask) -> float:
    """Return the whole median round trip, in ns."""
    return _column(text, ask.bytes, 2, 5) * 2e3


def read_osu_operation(text: str, ask: Ask) -> float:
    """Return the whole mean operation, in ns."""
    return _column(text, ask.bytes, 1, 2) * 1e3


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
        statistic="mean", clocked=True, commands=partial(_osu, ("osu_latency",)), read=read_osu,
    ),
    Tool(
        name="osu_latency -z", program="osu_latency", package="", source=_OSU,
        statistic="p50", clocked=True, commands=partial(_osu, ("osu_latency", "-z")), read=read_osu_median,
    ),
    Tool(
        name="osu_get_latency -s flush", program="osu_get_latency", package="", source=_OSU, min_bytes=1,
        statistic="mean", commands=partial(_osu, ("osu_get_latency", "-s", "flush")), read=read_osu_operation,
    ),
    Tool(
        name="osu_put_latency -s flush_local", program="osu_put_latency", package="", source=_OSU, min_bytes=1,
        statistic="mean", commands=partial(_osu, ("osu_put_latency", "-s", "flush_local")), read=read_osu_operation,
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
