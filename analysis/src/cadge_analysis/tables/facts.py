# SPDX-License-Identifier: BSD-3-Clause
"""The tables `hosts` and `campaigns`: where was measured, when, and with what."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import JsonValue

from cadge_analysis.cells.entry import Field, table_of
from cadge_results import Campaign, NodeFacts


def _part(value: JsonValue, *keys: str) -> JsonValue:
    """Return what stands under keys, or None; a fact that could not be read is {"unknown": why}."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(fact: str, *keys: str) -> Callable[[NodeFacts], str | None]:
    def of(facts: NodeFacts) -> str | None:
        found = _part(getattr(facts, fact), *keys)
        return found if isinstance(found, str) else None

    return of


def _integer(fact: str, *keys: str) -> Callable[[NodeFacts], int | None]:
    def of(facts: NodeFacts) -> int | None:
        found = _part(getattr(facts, fact), *keys)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    return of


def _quota(facts: NodeFacts) -> float | None:
    return float(facts.quota) if isinstance(facts.quota, int | float) else None


_HOSTS: tuple[Field[NodeFacts], ...] = (
    Field("host", lambda facts: facts.host),
    Field("cpu_model", _text("cpu", "model name")),
    Field("microcode", _text("cpu", "microcode")),
    Field("kernel_release", _text("kernel", "release")),
    Field("machine", _text("kernel", "machine")),
    Field("libc", _text("libc")),
    Field("python", _text("python")),
    Field("virtualisation", _text("virtualisation")),
    Field("governor", _text("governor")),
    Field("quota_processors", _quota),
    Field("clocksource", _text("clocksource", "current")),
    Field("thp", _text("thp")),
    Field("logical_cores", _integer("cores", "logical")),
    Field("physical_cores", _integer("cores", "physical")),
    Field("sockets", _integer("cores", "sockets")),
    Field("memory_bytes", _integer("memory", "MemTotal")),
)
_CAMPAIGNS: tuple[Field[Campaign], ...] = (
    Field("created_utc", lambda one: one.meta.created_utc),
    Field("finished_utc", lambda one: one.meta.finished_utc),
    Field("status", lambda one: one.meta.status),
    Field("sweep", lambda one: one.meta.sweep),
    Field("testbed", lambda one: one.meta.testbed.name),
    Field("testbed_kind", lambda one: one.meta.testbed.kind),
    Field("cadge_version", lambda one: one.meta.tool.version),
    Field("cadge_revision", lambda one: one.meta.tool.revision),
    Field("dirty", lambda one: one.meta.tool.dirty),
    Field("hosts", lambda one: len(one.meta.testbed.hosts)),
    Field("planned_points", lambda one: one.meta.planned.points),
    Field("planned_launches", lambda one: one.meta.planned.launches),
    Field("planned_attempts", lambda one: one.meta.planned.attempts),
    Field("stored_launches", lambda one: len(one.launch_ids())),
    Field("seed", lambda one: one.meta.seed),
    Field("hosts_used", lambda one: " ".join(one.plan.hosts_used(one.meta.testbed.hosts))),
    Field("path", lambda one: str(one.path)),
)
HOSTS = table_of("hosts", lambda _: _HOSTS, lambda campaign: campaign.nodes())
CAMPAIGNS = table_of("campaigns", lambda _: _CAMPAIGNS, lambda campaign: (campaign,))
