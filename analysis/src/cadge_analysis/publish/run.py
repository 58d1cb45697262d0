# SPDX-License-Identifier: BSD-3-Clause
"""The files of one published run, made from the copy of a campaign that may go out."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from cadge_analysis import export, report
from cadge_analysis.publish import bundle
from cadge_analysis.publish.banner import framed
from cadge_analysis.publish.cite import citation, licence_text
from cadge_analysis.publish.model import Licence, PublishedRun, Retraction
from cadge_analysis.stats.load import read
from cadge_results import Campaign
from cadge_results.base import Document
from cadge_results.published import document_paths, original_sha256
from cadge_results.schemas import DOCUMENTS, file_name, schema_text

SUMS = "SHA256SUMS"
RUN = "run.json"
PAGE = "index.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What the user says of a site's runs: where they were measured, by whom, under which licence."""

    licence: Licence
    authors: Sequence[dict[str, JsonValue]]
    site: str | None = None
    title: str | None = None


def schemas() -> dict[str, bytes]:
    """Return the JSON Schema of every stored format, and of what a site keeps, by file name."""
    kinds: tuple[type[Document], ...] = (*DOCUMENTS, PublishedRun)
    return {file_name(one): schema_text(one).encode() for one in kinds}


def run_files(campaign: Campaign, labels: Labels, retracted: Retraction | None) -> dict[str, bytes]:
    """Return every file of a run by name. Raises AnalysisError, cadge_results.ResultsError."""
    meta, data = campaign.meta, read(campaign)
    page = report.page_of(data, title=labels.title)
    name = campaign.campaign_id
    with tempfile.TemporaryDirectory(prefix="cadge-publish-") as folder:
        written = Path(folder) / "report.html"
        report.write(page, written)
        html = written.read_text(encoding="utf-8")
    html = html.replace("Data: CC-BY-4.0.", f"Data: {labels.licence}.")
    first = page.answers[0] if page.answers else None
    headline = f"{first.topic}: {''.join(span.text for span in first.spans)}" if first else "No ranking: see the report"
    archive = f"cadge-{name}.tar.gz"
    run = PublishedRun(
        schema_=PublishedRun.schema_id(),
        campaign_id=name,
        title=page.title,
        created_utc=meta.created_utc,
        site=labels.site or f"{meta.testbed.name} ({meta.testbed.kind})",
        layers=tuple(series.label for series in data.layers),
        withheld=dict(meta.redacted.withheld) if meta.redacted else {},
        headline=headline,
        validity=page.warned.headline,
        redacted=meta.redacted is not None,
        original_sha256=meta.redacted.original_sha256 if meta.redacted else original_sha256(campaign),
        licence=labels.licence,
        bundle=archive,
        retracted=retracted,
    )
    cff = citation(
        f"{page.title}: campaign {name}",
        authors=labels.authors,
        licence=labels.licence,
        released=(meta.finished_utc or meta.created_utc)[:10],
        identifier=name,
        tool=meta.tool.version,
    ).encode()
    common = {
        "summary.csv": _exported(campaign, "csv"),
        "summary.json": _exported(campaign, "json"),
        "CITATION.cff": cff,
    }
    documents = {f"{name}/{file}": path.read_bytes() for file, path in document_paths(campaign)}
    whole = {
        **common,
        **documents,
        **{f"schema/{file}": text for file, text in schemas().items()},
        "README.md": bundle.readme(campaign, title=page.title, licence=labels.licence),
        "LICENSE-DATA": licence_text(labels.licence).encode(),
        "environment.json": bundle.environment(campaign),
        "repeat.sh": bundle.repeat(campaign),
        "report.html": html.encode(),
    }
    whole[SUMS] = bundle.sums(whole)
    return {
        **common,
        RUN: run.to_json().encode(),
        PAGE: framed(html, run).encode(),
        "campaign.json": campaign.layout.meta.read_bytes(),
        "plan.json": campaign.layout.plan.read_bytes(),
        "records.jsonl.gz": bundle.squeezed(b"".join(_records(campaign))),
        archive: bundle.packed(whole, f"cadge-{name}", bundle.moment(campaign)),
    }


def _records(campaign: Campaign) -> list[bytes]:
    """Return the raw records, a line each."""
    return [campaign.content(name).data for name in sorted(campaign.launch_ids())]


def _exported(campaign: Campaign, kind: str) -> bytes:
    stream = io.StringIO(newline="")
    export.write(campaign, kind, stream)
    return stream.getvalue().encode()
