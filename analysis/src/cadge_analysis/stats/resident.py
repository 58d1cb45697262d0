# SPDX-License-Identifier: BSD-3-Clause
"""What opening a layer and bringing up its channels took of memory, of the process with the most channels."""

from __future__ import annotations

from dataclasses import dataclass

from cadge_results import LaunchRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Bytes that are resident once all channels are up, less those before the layer was loaded, without files.

    `shared` is a part of `memory`. shared_part: of it, each page divided by the processes that touched it.
    """

    memory: int
    shared: int
    shared_part: int


def heaviest(record: LaunchRecord) -> int:
    """Return the endpoint with the most channels; of equal ones the last, since the first gathers what all say."""
    ends = record.launch.endpoints
    return max(range(len(ends)), key=lambda number: (len(ends[number].peers), number))


def taken(record: LaunchRecord) -> Taken | None:
    """Return what the process with the most channels took; None where the record does not hold it."""
    told = record.result.resident_bytes if record.result is not None and record.status == "done" else ()
    number = heaviest(record)
    if number >= len(told):
        return None
    before, after = told[number].before, told[number].connected
    if before is None or after is None:
        return None
    return Taken(
        memory=after.memory - before.memory,
        shared=after.shared - before.shared,
        shared_part=after.shared_part - before.shared_part,
    )
