# SPDX-License-Identifier: BSD-3-Clause
"""Publishing campaigns into a site: redact, make, check, and only then put in place."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cadge_analysis.publish.leaks import Leak, LeakError, checker, leaks, own_words
from cadge_analysis.publish.model import SiteFile
from cadge_analysis.publish.run import Labels, run_files
from cadge_analysis.publish.site import MARKER, Site, changed, check_target
from cadge_results import Campaign
from cadge_results.publish.published import PublishedCopy, Rules, copy
from cadge_results.publish.redact import Redactor


@dataclass(frozen=True, slots=True)
class Copies:
    """Campaigns as they would go out."""

    made: tuple[PublishedCopy, ...]
    places: Mapping[tuple[int, str, str, str], int]
    """How often which name was replaced by what: (which campaign, kind, name, pseudonym)."""


@contextmanager
def redacted(campaigns: Sequence[Campaign], rules: Rules) -> Iterator[Copies]:
    """Yield copies in a folder of their own, which is gone afterwards. Raises ResultsError."""
    rules = replace(rules, words=own_words() | set(rules.words))
    with tempfile.TemporaryDirectory(prefix="cadge-publish-") as folder:
        made = tuple(
            copy(one, Path(folder) / str(number) / one.campaign_id, rules) for number, one in enumerate(campaigns)
        )
        places = {
            (number, *which): often for number, one in enumerate(made) for which, often in one.redactor.places.items()
        }
        yield Copies(made, places)


def publish(copies: Copies, target: Path, labels: Labels, site_title: str | None = None) -> list[Path]:
    """Put runs into a site, and return their folders there.

    Raises LeakError where a name or a secret is left; then, as after every error, the site is as it was.
    """
    real = check_target(target)
    with changed(target) as site:
        about = _about(site, labels, site_title)
        labels = replace(labels, licence=about.licence, authors=about.authors)
        known = {run.campaign_id: run for run in site.runs()}
        found: list[Leak] = []
        checkers: list[Redactor] = []
        for made in copies.made:
            campaign, name = made.campaign, made.campaign.campaign_id
            check = checker(made.redactor)
            checkers.append(check)
            root = campaign.path.parent
            found += leaks(root, (path for path in sorted(campaign.path.rglob("*")) if path.is_file()), check)
            before = known.get(name)
            site.put_run(name, run_files(campaign, labels, before.retracted if before else None))
            found += leaks(site.root, sorted(site.folder(name).iterdir()), check)
        for path in site.write_rest(about):
            for check in checkers:
                found += leaks(site.root, [path], check)
        if found:
            raise LeakError(list(dict.fromkeys(found)))
    return [Site(real).folder(made.campaign.campaign_id) for made in copies.made]


def _about(site: Site, labels: Labels, title: str | None) -> SiteFile:
    """Return what the site says of itself: what it said, but for what the user says now."""
    old = site.about() if (site.root / MARKER).is_file() else None
    return SiteFile(
        schema_=SiteFile.schema_id(),
        title=title or (old.title if old else "Communication layers compared"),
        licence=labels.licence,
        authors=tuple(labels.authors) or (old.authors if old else ()),
        feed_id=old.feed_id if old else None,
        url=labels.url or (old.url if old else None),
    )
