# SPDX-License-Identifier: BSD-3-Clause
"""Judging a collected launch by how its processes ended, and by whether the agent could read what it is judged by."""

from __future__ import annotations

from collections.abc import Iterator

from cadge_harness.words import ended_how
from cadge_results import Check, LaunchRecord
from cadge_results.formats.record import HostCounters


def ended_well(record: LaunchRecord) -> Check:
    """Judge how processes ended: who breaks after its results may have been broken before them.

    Of ranks only their launcher's exit status is known, which is not 0 where one of theirs is not.
    """
    codes = record.exit_codes
    if record.launch.launcher == "direct":
        of_all = [codes[number] if number < len(codes) else None for number in range(len(record.launch.endpoints))]
        wrong = [
            f"endpoint {number} ended {ended_how(code)}, after its results"
            for number, code in enumerate(of_all)
            if code != 0
        ]
    else:
        first = codes[0] if codes else None
        wrong = [] if first == 0 else [f"the launcher ended {ended_how(first)}, after the results"]
    return Check(name="ended_well", ok=not wrong, detail="; ".join(wrong))


def counters_read(record: LaunchRecord) -> Check:
    """Judge whether every interface was counted that could show where payload went."""
    by_host = {host.host: host for host in record.counters}
    wrong = []
    for name in dict.fromkeys(end.host for end in record.launch.endpoints):
        if name in by_host:
            wrong += [f"{name}: {said}" for said in _missing(record, by_host[name])]
        else:
            wrong.append(f"{name}: there are no counters at all")
    return Check(name="counters_read", ok=not wrong, detail="; ".join(wrong))


def _missing(record: LaunchRecord, host: HostCounters) -> Iterator[str]:
    ends = [end for end in record.launch.endpoints if end.host == host.host]
    wanted = {"lo", *(end.device for end in ends), *(end.raw_device for end in ends if end.raw_device)}
    told = {said.partition(":")[0] for said in host.uncounted}
    for name in sorted((wanted | host.before.keys() | host.after.keys()) - told):
        if name not in host.before and name not in host.after:
            yield f"there are no counters of {name}"
        elif name not in host.before or name not in host.after:
            yield f"there are no counters of {name} {'after' if name in host.before else 'before'} the launch"
    for said in host.uncounted:
        yield f"not counted: {said}"
