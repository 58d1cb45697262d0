# SPDX-License-Identifier: BSD-3-Clause
"""Names for people: patterns, places, wait modes, floors, states. One spelling everywhere."""

from __future__ import annotations

from cadge_analysis import units
from cadge_analysis.stats.load import Case, Dataset, Series

PLACES = {"within": "within one host", "between": "between two hosts", "self": "one process with itself"}
PLACES_SHORT = {"within": "within", "between": "between", "self": "self"}
WAITS = {"poll": "polling", "block": "blocking"}
PATTERNS = {
    "pingpong": "Bare messages",
    "rpc": "RPC",
    "stream": "Stream",
    "onesided": "One-sided",
}
PATTERN_ORDER = ("rpc", "pingpong", "stream", "onesided")
PLACE_ORDER = ("within", "between", "self")
WAIT_ORDER = ("poll", "block")
STATES = {
    "valid": "measured, every check passed",
    "unsound": "measured, but a check failed: shown nowhere as a number",
    "failed": "tried, and gave no measurement",
    "refused": "not possible here, with a tested reason",
    "missing": "planned, and not made",
}
SHARED_MEMORY = {
    "private": "a mount of /dev/shm of the endpoints' own",
    "folder": "a folder of the endpoints' own in /dev/shm",
    "shared": "/dev/shm, as everybody uses it",  # noqa: S108 - words
}
_FLOORS = {
    "floor-cacheline": "cache line bounced",
    "floor-copyflag": "copy and flag",
    "floor-futex": "futex hand-off",
    "floor-tcp": "bare TCP",
    "floor-udp": "bare UDP",
    "floor-xdp": "raw frames",
}


def on_veth(data: Dataset) -> bool:
    """Tell whether the network between the hosts is made of virtual interfaces of one kernel."""
    if data.meta.testbed.kind == "emulated":
        return True
    for node in data.nodes:
        interfaces = node.interfaces
        if isinstance(interfaces, dict) and any(
            isinstance(facts, dict) and facts.get("driver") == "veth" for facts in interfaces.values()
        ):
            return True
    return False


def floor_name(series: Series, *, veth: bool) -> str:
    """Return what a floor is, in words; raw frames over a veth pass through a kernel and say so."""
    text = _FLOORS.get(series.layer, series.layer)
    if series.layer == "floor-xdp" and veth:
        text = "raw-frame floor, kernel included"
    return f"{text} ({', '.join(f'{k}={v}' for k, v in series.settings)})" if series.settings else text


def workload(case: Case) -> str:
    """Return the workload of a case without its place and wait mode: "8 B", "8 B → 4 KiB, 16 in flight"."""
    text = units.size(case.request_bytes)
    if case.pattern == "rpc" and case.reply_bytes != case.request_bytes:
        text += f" \u2192 {units.size(case.reply_bytes)}"
    if case.pattern == "onesided":
        text = f"{case.operation.replace('_', '-')} {text}" + (f", {case.target} target" if case.target else "")
    if case.pattern == "stream":
        text += f", window {units.grouped(case.depth)}"
    elif case.depth != 1:
        text += f", {units.grouped(case.depth)} in flight"
    return text


def listing(names: list[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
