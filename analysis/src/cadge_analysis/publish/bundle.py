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
from functools import partial

from cadge_analysis import messages, words
from cadge_results import Campaign
from cadge_results.publish.published import LEFT_OUT

say = partial(messages.say, "publish")


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
    """Return what the campaign was measured with: tool, builds, testbed, and the facts of each host."""
    meta = campaign.meta
    found = {
        "tool": meta.tool.model_dump(mode="json"),
        "build": meta.build,
        **campaign.plan.builds_said(),
        "testbed": meta.testbed.model_dump(mode="json"),
        "hosts": [node.to_object() for node in campaign.nodes()],
    }
    return (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode()


def repeat(campaign: Campaign) -> bytes:
    """Return a script with the command that measures the campaign again."""
    meta = campaign.meta
    gap = (
        "\n" + say("bundle.left_out", left_out=LEFT_OUT, campaign_id=campaign.campaign_id)
        if LEFT_OUT in meta.command
        else ""
    )
    where = say("bundle.checkout", version=meta.tool.version, revision=meta.tool.revision)
    return f"#!/bin/sh\n{where}{gap}\nset -eu\n{shlex.join(meta.command)}\n".encode()


def readme(campaign: Campaign, *, title: str, licence: str) -> bytes:
    """Return the archive's README: what is in it, how to check it, how to repeat it."""
    meta = campaign.meta
    name = campaign.campaign_id
    redacted = meta.redacted
    dirty = " " + words.UNCOMMITTED if meta.tool.dirty else ""
    withheld = "".join(f"- {layer}: {why}\n" for layer, why in redacted.withheld.items()) if redacted else ""
    return (
        say(
            "bundle.read_me",
            title=title,
            name=name,
            version=meta.tool.version,
            revision=meta.tool.revision,
            dirty=dirty,
            licence=licence,
            command=shlex.join(meta.command),
            is_redacted="yes" if redacted else "no",
            redacted=_redacted(campaign),
            layers=say("bundle.withheld_layers") if withheld else "",
            withheld=withheld,
        )
        .rstrip()
        .encode()
        + b"\n"
    )


def _redacted(campaign: Campaign) -> str:
    redacted = campaign.meta.redacted
    if redacted is None:
        return say("bundle.not_redacted")
    out = "" if redacted.logs else " " + say("bundle.logs_left_out")
    return say(
        "bundle.redacted",
        logs=out,
        original_plan_hash=redacted.original_plan_hash,
        original_sha256=redacted.original_sha256,
    )


def moment(campaign: Campaign) -> datetime:
    """Return the time that files in an archive have: the campaign's beginning."""
    return datetime.fromisoformat(campaign.meta.created_utc).astimezone(UTC)
