# SPDX-License-Identifier: BSD-3-Clause
"""The feed of a site (Atom, RFC 4287): an entry a run, the newest first.

Ids are `urn:uuid:` of campaign ids (RFC 4122, version 5), so that they stay when the site moves. No clock is asked: an
entry is as old as its campaign, or as its retraction, and equal sites have equal feeds. Links are relative to the feed,
which RFC 4287 allows (section 4.2.7.1), unless the site was told where it is read.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as Xml

from cadge_analysis.publish.model import PublishedRun, SiteFile

FEED = "feed.xml"
_ATOM = "http://www.w3.org/2005/Atom"
_SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:cadge:campaign")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def new_id(runs: Sequence[PublishedRun]) -> str:
    """Return the id of a site's feed, made of its oldest run. The site keeps it: runs that come may be older."""
    return _id(f"site of {runs[-1].campaign_id}" if runs else "empty site")


def feed(about: SiteFile, runs: Sequence[PublishedRun]) -> bytes:
    """Return the feed of runs, which come the newest first."""
    base = f"{about.url.rstrip('/')}/" if about.url else ""
    root = Xml.Element("feed", xmlns=_ATOM)
    _text(root, "id", about.feed_id or new_id(runs))
    _text(root, "title", about.title)
    _text(root, "updated", max(map(_updated, runs), default="1970-01-01T00:00:00Z"))
    if base:
        Xml.SubElement(root, "link", rel="self", type="application/atom+xml", href=f"{base}{FEED}")
    Xml.SubElement(root, "link", rel="alternate", type="text/html", href=f"{base}index.html")
    for name in _authors(about):
        _text(Xml.SubElement(root, "author"), "name", name)
    for run in runs:
        entry = Xml.SubElement(root, "entry")
        _text(entry, "id", _id(run.campaign_id))
        _text(entry, "title", f"RETRACTED: {run.title}" if run.retracted else run.title)
        _text(entry, "published", _moment(run.created_utc))
        _text(entry, "updated", _updated(run))
        page = f"{base}runs/{run.campaign_id}/index.html"
        Xml.SubElement(entry, "link", rel="alternate", type="text/html", href=page)
        _text(entry, "summary", _summary(run))
    Xml.indent(root, " ")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode").encode() + b"\n"


def _summary(run: PublishedRun) -> str:
    if run.retracted:
        return f"Retracted on {run.retracted.at_utc}: {run.retracted.because}"
    return f"{run.headline} ({run.validity}.) Layers: {', '.join(run.layers)}."


def _authors(about: SiteFile) -> list[str]:
    """Return the authors' names; a feed has to have one (RFC 4287, section 4.1.1)."""
    names = [
        str(one.get("name") or " ".join(str(one[key]) for key in ("given-names", "family-names") if key in one))
        for one in about.authors
    ]
    return [name for name in names if name] or ["anonymous"]


def _id(what: str) -> str:
    return uuid.uuid5(_SPACE, what).urn


def _moment(said: str) -> str:
    """Return a time of the store, or a day, as RFC 3339 has it."""
    found = datetime.fromisoformat(said)
    return f"{(found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _updated(run: PublishedRun) -> str:
    made = _moment(run.created_utc)
    return max(made, _moment(run.retracted.at_utc)) if run.retracted else made


def _text(parent: Xml.Element, name: str, text: str) -> None:
    Xml.SubElement(parent, name).text = _NOT_XML.sub("\ufffd", text)
