# SPDX-License-Identifier: BSD-3-Clause
"""The archive of one run, for a paper's artefacts: everything that is needed to check and to repeat it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shlex
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime

from cadge_results import Campaign
from cadge_results.published import LEFT_OUT


def sums(files: Mapping[str, bytes]) -> bytes:
    """Return SHA256SUMS of files, as `sha256sum --check` reads it."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()


def packed(files: Mapping[str, bytes], folder: str, at: datetime) -> bytes:
    """Return a .tar.gz of files in a folder. Equal files give equal bytes (with the same zlib)."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(files[name]), int(at.timestamp()), 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return squeezed(plain.getvalue())


def squeezed(content: bytes) -> bytes:
    """Return bytes as gzip, without a time or a name."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=9) as stream:
        stream.write(content)
    return out.getvalue()


def environment(campaign: Campaign) -> bytes:
    """Return what the campaign was measured with: tool, build, testbed, and the facts of each host."""
    meta = campaign.meta
    found = {
        "tool": meta.tool.model_dump(mode="json"),
        "build": meta.build,
        "testbed": meta.testbed.model_dump(mode="json"),
        "hosts": [node.to_object() for node in campaign.nodes()],
    }
    return (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode()


def repeat(campaign: Campaign) -> bytes:
    """Return a script with the command that measures the campaign again."""
    meta = campaign.meta
    gap = (
        f"\n# {LEFT_OUT}: put your own there; {campaign.campaign_id}/sweep.yml is the sweep"
        if LEFT_OUT in meta.command
        else ""
    )
    return f"""#!/bin/sh
# Cadge {meta.tool.version}, revision {meta.tool.revision}: in a checkout of it, after `make build`{gap}
set -eu
{shlex.join(meta.command)}
""".encode()


def readme(campaign: Campaign, *, title: str, licence: str) -> bytes:
    """Return the archive's README: what is in it, how to check it, how to repeat it."""
    meta = campaign.meta
    name = campaign.campaign_id
    redacted = meta.redacted
    dirty = " with changes that were not committed" if meta.tool.dirty else ""
    withheld = "".join(f"- {layer}: {why}\n" for layer, why in redacted.withheld.items()) if redacted else ""
    return (
        f"""# {title}

Campaign {name}, measured with Cadge {meta.tool.version}, revision {meta.tool.revision}{dirty}.

| file | what it holds |
|---|---|
| `report.html` | the report; opens offline, with its pages `report-PATTERN.html` beside it where it has several |
| `summary.csv`, `summary.json` | a row for every planned point, unrounded |
| `{name}/` | the campaign: plan, raw records, facts of hosts, each with its checksum |
| `environment.json` | tool, build, testbed and hosts |
| `repeat.sh` | the command that measures it again |
| `schema/` | JSON Schemas of every file |
| `SHA256SUMS` | checksums of all files |
| `CITATION.cff`, `LICENSE-DATA` | how to cite it; the data are under {licence} |

## Check

    sha256sum --check SHA256SUMS
    cadge verify ./{name}
    cadge report ./{name} -o again.html

## Repeat

    {shlex.join(meta.command)}

## Redacted: {"yes" if redacted else "no"}

{_redacted(campaign)}
{"Layers whose figures may not be published:" if withheld else ""}
{withheld}""".rstrip().encode()
        + b"\n"
    )


def _redacted(campaign: Campaign) -> str:
    redacted = campaign.meta.redacted
    if redacted is None:
        return "The files are those that were measured, byte by byte."
    out = "" if redacted.logs else " Logs, typed commands and PATH were left out."
    return f"""Names of hosts and people were replaced, and checksums made anew. Numbers are as they were measured.{out}
The original campaign has the plan hash {redacted.original_plan_hash}, and the digest
{redacted.original_sha256}, which is what this prints in its folder:

    find . -type f \\( -name '*.json' -o -name sweep.yml -o -name trace.bin \\) -not -path './aside/*' \\
      | LC_ALL=C sort | xargs sha256sum | sha256sum"""


def moment(campaign: Campaign) -> datetime:
    """Return the time that files in an archive have: the campaign's beginning."""
    return datetime.fromisoformat(campaign.meta.created_utc).astimezone(UTC)
