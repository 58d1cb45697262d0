# SPDX-License-Identifier: BSD-3-Clause
"""OSU's and Intel's MPI benchmarks, where the user has them on PATH: both poll, and print means.

With -z osu_latency prints quantiles as well (from 7.3 on). IMB-MPI1's makefile asks for -O0.
"""

from __future__ import annotations

from functools import partial

from cadge_harness.native.tool import Ask, Commands, Tool, messages, value_of
from cadge_harness.printed import imb, osu
from cadge_results.formats.imported import Kind


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


def _read_osu(test: str, kind: Kind, statistic: str, text: str, ask: Ask) -> float:
    """Return what a test prints: ns of a whole round trip, or of a whole operation, or bytes a second."""
    return value_of(osu.read, text, ask.bytes, (test, kind, statistic))


def _read_imb(text: str, ask: Ask) -> float:
    """Return the whole mean round trip, in ns."""
    return value_of(imb.read, text, ask.bytes, ("PingPong", "time", "mean"))


_OSU = "OSU Micro-Benchmarks, built with Open MPI, on PATH"
_INTEL = "Intel MPI Benchmarks, built with Open MPI, on PATH"
TOOLS = (
    Tool(
        name="osu_latency", program="osu_latency", package="", source=_OSU,
        statistic="mean", clocked=True, commands=partial(_osu, ("osu_latency",)),
        read=partial(_read_osu, "osu_latency", "time", "mean"),
    ),
    Tool(
        name="osu_latency -z", program="osu_latency", package="", source=_OSU,
        statistic="p50", clocked=True, commands=partial(_osu, ("osu_latency", "-z")),
        read=partial(_read_osu, "osu_latency", "time", "p50"),
    ),
    Tool(
        name="osu_get_latency -s flush", program="osu_get_latency", package="", source=_OSU, min_bytes=1,
        statistic="mean", commands=partial(_osu, ("osu_get_latency", "-s", "flush")),
        read=partial(_read_osu, "osu_get_latency", "time", "mean"),
    ),
    Tool(
        name="osu_put_latency -s flush_local", program="osu_put_latency", package="", source=_OSU, min_bytes=1,
        statistic="mean", commands=partial(_osu, ("osu_put_latency", "-s", "flush_local")),
        read=partial(_read_osu, "osu_put_latency", "time", "mean"),
    ),
    Tool(
        name="osu_bw", program="osu_bw", package="", source=_OSU,
        statistic="rate", commands=_osu_bw,
        read=partial(_read_osu, "osu_bw", "bandwidth", "overall"), min_bytes=1,
    ),
    Tool(
        name="IMB-MPI1 PingPong", program="IMB-MPI1", package="", source=_INTEL,
        statistic="mean", commands=_imb, read=_read_imb, min_bytes=1,
    ),
)  # fmt: skip
