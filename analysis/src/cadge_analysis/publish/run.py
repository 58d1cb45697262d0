# SPDX-License-Identifier: BSD-3-Clause
"""The files of one published run, made from the copy of a campaign that may go out."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from types import MappingProxyType

from pydantic import JsonValue

from cadge_analysis import export, messages, report
from cadge_analysis.blocks.make import panels_of, region_of
from cadge_analysis.blocks.model import Heading
from cadge_analysis.blocks.ranked import Picture
from cadge_analysis.publish import bundle
from cadge_analysis.publish.banner import BADGE, badge, framed
from cadge_analysis.publish.cite import citation, licence_text
from cadge_analysis.publish.model import Licence, PublishedRun, Retraction, SiteFile
from cadge_analysis.stats.load import read
from cadge_results import Campaign
from cadge_results.formats.base import Document
from cadge_results.publish.published import document_paths, original_sha256
from cadge_results.schemas import DOCUMENTS, file_name, schema_text

say = partial(messages.say, "publish")

SUMS = "SHA256SUMS"
RUN = "run.json"
PAGE = "index.html"
REPORT = "report.html"
"""The report in an archive; on a site it is PAGE."""
PANELS = 2
"""So many of a report's ranked panels make the card of its run."""
SUMMARIES = ("summary.csv", "summary.json", "CITATION.cff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What the user says of a site's runs: where they were measured, by whom, under which licence."""

    licence: Licence
    authors: Sequence[dict[str, JsonValue]]
    site: str | None = None
    title: str | None = None
    url: str | None = None
    """Where the site is read."""


@cache
def schemas() -> Mapping[str, bytes]:
    """Return the JSON Schema of every stored format, and of what a site keeps, by file name."""
    kinds: tuple[type[Document], ...] = (*DOCUMENTS, PublishedRun, SiteFile)
    return MappingProxyType({file_name(one): schema_text(one).encode() for one in kinds})


@dataclass(frozen=True, slots=True)
class RunBundle:
    """A run, its report as a site names it, and every file of its archive."""

    run: PublishedRun
    on_site: Mapping[str, str]
    archived: Mapping[str, bytes]

    def packed(self, campaign: Campaign) -> bytes:
        """Return the archive."""
        return bundle.packed(self.archived, f"cadge-{self.run.campaign_id}", bundle.moment(campaign))


def bundled(campaign: Campaign, labels: Labels, retracted: Retraction | None = None) -> RunBundle:
    """Return all that is said of a campaign. Raises AnalysisError, cadge_results.ResultsError."""
    meta, data = campaign.meta, read(campaign)
    page = report.page_of(data, title=labels.title)
    name = campaign.campaign_id
    on_site, archived = (_licensed(dict(report.files(page, main)), labels.licence) for main in (PAGE, REPORT))
    panels = tuple(islice(panels_of(page.blocks), PANELS))
    headline = f"{panels[0].topic}: {panels[0].headline}" if panels else say("run.no_ranking")
    banner = region_of(page.blocks, "banner")
    archive = f"cadge-{name}.tar.gz"
    run = PublishedRun(
        schema_=PublishedRun.schema_id(),
        campaign_id=name,
        title=page.title,
        created_utc=meta.created_utc,
        site=labels.site or " ".join(dict.fromkeys((meta.testbed.name, meta.testbed.kind))),
        layers=tuple(series.label for series in data.layers),
        withheld=dict(meta.redacted.withheld) if meta.redacted else {},
        headline=headline,
        picture=Picture(questions=panels, conclusion="").stored() if panels else None,
        validity="".join(one.text for one in banner.blocks if isinstance(one, Heading)) if banner else "",
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
    documents = {f"{name}/{file}": path.read_bytes() for file, path in document_paths(campaign)}
    whole = {
        "summary.csv": _exported(campaign, "csv"),
        "summary.json": _exported(campaign, "json"),
        "CITATION.cff": cff,
        **documents,
        **{f"schema/{file}": text for file, text in schemas().items()},
        "README.md": bundle.readme(campaign, title=page.title, licence=labels.licence),
        "LICENSE-DATA": licence_text(labels.licence).encode(),
        "environment.json": bundle.environment(campaign),
        "repeat.sh": bundle.repeat(campaign),
        **{file: text.encode() for file, text in archived.items()},
    }
    whole[SUMS] = bundle.sums(whole)
    return RunBundle(run, on_site, whole)


def run_files(campaign: Campaign, labels: Labels, retracted: Retraction | None) -> dict[str, bytes]:
    """Return every file of a run on a site by name. Raises AnalysisError, cadge_results.ResultsError."""
    made = bundled(campaign, labels, retracted)
    return {
        **{name: made.archived[name] for name in SUMMARIES},
        RUN: made.run.to_json().encode(),
        BADGE: badge(made.run),
        **{file: framed(text, made.run).encode() for file, text in made.on_site.items()},
        "campaign.json": campaign.layout.meta.read_bytes(),
        "plan.json": campaign.layout.plan.read_bytes(),
        "records.jsonl.gz": bundle.squeezed(b"".join(_records(campaign))),
        made.run.bundle: made.packed(campaign),
    }


def _licensed(files: Mapping[str, str], licence: Licence) -> dict[str, str]:
    return {name: text.replace("Data: CC-BY-4.0.", f"Data: {licence}.") for name, text in files.items()}


def _records(campaign: Campaign) -> list[bytes]:
    """Return the raw records, a line each."""
    return [campaign.content(name).data for name in sorted(campaign.launch_ids())]


def _exported(campaign: Campaign, kind: str) -> bytes:
    stream = io.StringIO(newline="")
    export.write(campaign, kind, stream)
    return stream.getvalue().encode()
