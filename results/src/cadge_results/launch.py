# SPDX-License-Identifier: BSD-3-Clause
"""The launch file: what one driver pair has to do (`cadge.launch/1`)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt

from cadge_results.base import Document, Frozen, Kind, Launcher, Operation, Pattern, Place, Target, Wait


class Endpoint(Frozen):
    """Where one driver process runs. Endpoint 0 is the client: it measures and writes."""

    host: str
    cpu: int = Field(ge=-1)
    """CPU to pin to; -1: not pinned."""
    device: str
    address: str
    raw_device: str = ""


class LaunchPoint(Frozen):
    """One attempt to make."""

    attempt_id: str
    point_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    pattern: Pattern
    request_bytes: NonNegativeInt
    reply_bytes: NonNegativeInt
    depth: PositiveInt
    operation: Operation | None = None
    target: Target | None = None
    duration_ms: PositiveInt
    deadline_ms: PositiveInt


class LaunchFile(Document):
    """Input of cadge-driver and cadge-floor."""

    NAME: ClassVar[str] = "cadge.launch"

    launch_id: str
    campaign_id: str
    kind: Kind
    layer: str
    shims: tuple[str, ...] = ()
    launcher: Launcher
    place: Place
    wait: Wait
    settings: dict[str, str] = Field(default_factory=dict)
    seed: int = Field(ge=0, lt=2**63)
    deadline_ms: PositiveInt
    ports: tuple[int, int]
    endpoints: tuple[Endpoint, ...] = Field(min_length=1, max_length=2)
    points: tuple[LaunchPoint, ...]
