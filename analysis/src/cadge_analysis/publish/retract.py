# SPDX-License-Identifier: BSD-3-Clause
"""Taking a published run back: on a site, or in an excerpt that a repository carries."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.publish import excerpt
from cadge_analysis.publish.leaks import LeakError, leaks, own_words, wrong
from cadge_analysis.publish.model import PublishedRun
from cadge_analysis.publish.run import RUN
from cadge_analysis.publish.site import MARKER, Site, changed
from cadge_results.publish.published import own_names
from cadge_results.publish.redact import Redactor

say = partial(messages.say, "publish")


def retract(target: Path, which: str, because: str, at_utc: str) -> str:
    """Retract a run of a site or an excerpt, and return its id.

    Raises BadInputError where the reason has a name or a secret in it, LeakError, NoDataError, FormatError.
    """
    check = Redactor(own_names(own_words()))
    if what := wrong(because, None, check):
        raise BadInputError(say("retract.reason_names", what=what))
    if not (target / MARKER).is_file() and (target / RUN).is_file():
        return _in_excerpt(target, which, because, at_utc)
    Site(target).about()
    with changed(target) as site:
        run = site.run(which)
        site.retract(run, because, at_utc)
        paths = [*site.write_rest(site.about()), *sorted(site.folder(run.campaign_id).glob("*.html"))]
        if found := leaks(site.root, paths, None):
            raise LeakError(found)
        return run.campaign_id


def _in_excerpt(target: Path, which: str, because: str, at_utc: str) -> str:
    path = target / RUN
    run = PublishedRun.parse(path.read_bytes(), source=str(path))
    if not which or not run.campaign_id.startswith(which):
        raise NoDataError(say("retract.another_run", target=target, campaign_id=run.campaign_id, which=which))
    with changed(target, RUN) as place:
        excerpt.retract(place.root, run, because, at_utc)
    return run.campaign_id
