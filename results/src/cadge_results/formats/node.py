# SPDX-License-Identifier: BSD-3-Clause
"""The node file: what one host is (`cadge.node/1`). A fact that could not be read says why."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, JsonValue

from cadge_results.formats.base import Document


class NodeFacts(Document):
    """Facts of one host, as its own script read them.

    The values under each key are the operating system's own words; an unknown one is {"unknown": reason}.
    """

    NAME: ClassVar[str] = "cadge.node"

    host: str
    nodename: JsonValue = Field(default=None, exclude_if=lambda value: value is None)
    """What its kernel calls it; the inventory may call it otherwise."""
    boot: JsonValue = Field(default=None, exclude_if=lambda value: value is None)
    """Which boot of its kernel it was, as a hash; emulated hosts of one machine have the same."""
    kernel: JsonValue = None
    cmdline: JsonValue = None
    cpu: JsonValue = None
    cores: JsonValue = None
    mitigations: JsonValue = None
    governor: JsonValue = None
    frequency: JsonValue = Field(default=None, exclude_if=lambda value: value is None)
    """What drives the processors' frequency, the limits set for it in kHz, and boost."""
    quota: JsonValue = Field(default=None, exclude_if=lambda value: value is None)
    """How many processors control groups allow, on average over a period; "none" where they limit nothing."""
    autogroup: JsonValue = Field(default=None, exclude_if=lambda value: value is None)
    """Whether the kernel shares processors out by session first (1), or by thread (0)."""
    virtualisation: JsonValue = None
    clocksource: JsonValue = None
    tsc: JsonValue = None
    memory: JsonValue = None
    hugepages: JsonValue = None
    thp: JsonValue = None
    libc: JsonValue = None
    python: JsonValue = None
    libraries: JsonValue = Field(default_factory=dict)
    programs: JsonValue = Field(default=None, exclude_if=lambda value: not value)
    """Of programs beside the build that points need: version of the package, file, build id; as of libraries."""
    configuration: JsonValue = None
    """The system's own settings of communication libraries: by each file's path, its bytes and its hash."""
    namespaces: JsonValue = Field(default_factory=dict)
    limits: JsonValue = Field(default_factory=dict)
    interfaces: JsonValue = Field(default_factory=dict)
    yama: JsonValue = None
    can: JsonValue = Field(default_factory=dict)
