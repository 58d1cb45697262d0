# SPDX-License-Identifier: BSD-3-Clause
"""The tables `hosts` and `campaigns`: where was measured, when, and with what."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from cadge_analysis.cells.table import Row, Table, column_of
from cadge_results import Campaign

_HOSTS = (
    *column_of(
        "text",
        campaign_id="the campaign",
        host="the host's name; a pseudonym in what was published",
        cpu_model="what the processor calls itself",
        microcode="of the processor",
        kernel_release="as uname says",
        machine="the architecture",
        libc="name and version",
        python="version that the host's own script ran with",
        virtualisation="what it runs in; none on bare metal",
        governor="of processor frequency",
        clocksource="the kernel's",
        thp="transparent huge pages; the chosen mode stands in brackets",
    ),
    *column_of(
        "integer",
        logical_cores="processors as the kernel counts",
        physical_cores="cores",
        sockets="packages",
        memory_bytes="main memory",
    ),
)
_CAMPAIGNS = (
    *column_of(
        "text",
        campaign_id="the campaign",
        created_utc="when it was begun",
        finished_utc="when it was finished",
        status="running, finished or interrupted",
        sweep="the sweep's name",
        testbed="the testbed's name",
        testbed_kind="local, emulated or inventory",
        cadge_version="which made it",
        cadge_revision="of its source",
    ),
    *column_of("boolean", dirty="whether that source had changes which were not committed"),
    *column_of(
        "integer",
        hosts="how many it had",
        planned_points="points, refused ones included",
        planned_launches="launches",
        planned_attempts="attempts",
        stored_launches="launches whose records are there",
        seed="of every random choice",
    ),
    *column_of("text", hosts_used="names of those that launches were planned on", path="its folder"),
)


def _part(value: JsonValue, *keys: str) -> JsonValue:
    """Return what stands under keys, or None; a fact that could not be read is {"unknown": why}."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: JsonValue, *keys: str) -> str | None:
    found = _part(value, *keys)
    return found if isinstance(found, str) else None


def _integer(value: JsonValue, *keys: str) -> int | None:
    found = _part(value, *keys)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def hosts(campaign: Campaign) -> Iterator[Row]:
    """Yield a row for every host."""
    for facts in campaign.nodes():
        yield {
            "campaign_id": campaign.campaign_id,
            "host": facts.host,
            "cpu_model": _text(facts.cpu, "model name"),
            "microcode": _text(facts.cpu, "microcode"),
            "kernel_release": _text(facts.kernel, "release"),
            "machine": _text(facts.kernel, "machine"),
            "libc": _text(facts.libc),
            "python": _text(facts.python),
            "virtualisation": _text(facts.virtualisation),
            "governor": _text(facts.governor),
            "clocksource": _text(facts.clocksource, "current"),
            "thp": _text(facts.thp),
            "logical_cores": _integer(facts.cores, "logical"),
            "physical_cores": _integer(facts.cores, "physical"),
            "sockets": _integer(facts.cores, "sockets"),
            "memory_bytes": _integer(facts.memory, "MemTotal"),
        }


def campaigns(campaign: Campaign) -> Iterator[Row]:
    """Yield the one row of a campaign."""
    meta = campaign.meta
    yield {
        "campaign_id": meta.campaign_id,
        "created_utc": meta.created_utc,
        "finished_utc": meta.finished_utc,
        "status": meta.status,
        "sweep": meta.sweep,
        "testbed": meta.testbed.name,
        "testbed_kind": meta.testbed.kind,
        "cadge_version": meta.tool.version,
        "cadge_revision": meta.tool.revision,
        "dirty": meta.tool.dirty,
        "hosts": len(meta.testbed.hosts),
        "planned_points": meta.planned.points,
        "planned_launches": meta.planned.launches,
        "planned_attempts": meta.planned.attempts,
        "stored_launches": len(campaign.launch_ids()),
        "seed": meta.seed,
        "hosts_used": " ".join(campaign.plan.hosts_used(meta.testbed.hosts)),
        "path": str(campaign.path),
    }


HOSTS = Table("hosts", "a row for every host of a campaign", _HOSTS, lambda _: _HOSTS, hosts)
CAMPAIGNS = Table("campaigns", "a row for every campaign", _CAMPAIGNS, lambda _: _CAMPAIGNS, campaigns)
