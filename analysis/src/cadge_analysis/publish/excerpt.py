# SPDX-License-Identifier: BSD-3-Clause
"""An excerpt of one run that a source repository can carry: the report and the summaries, but no raw data.

All else is in the run's archive, which lies elsewhere; the excerpt has its name and its SHA-256. Where the report's
pages are too large together, those stay that come first and fit; in the place of each other a short page says where it
is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.publish.banner import framed, templates
from cadge_analysis.publish.bundle import squeezed
from cadge_analysis.publish.leaks import LeakError, checker, leaks, own_words, wrong
from cadge_analysis.publish.model import PublishedRun, Retraction
from cadge_analysis.publish.publish import Copies
from cadge_analysis.publish.run import REPORT, RUN, SUMS, Labels, RunBundle, bundled
from cadge_analysis.publish.site import MARKER, Site, changed, check_unretracted, marked_files, put, put_files
from cadge_results.publish.published import own_names
from cadge_results.publish.redact import Redactor

say = partial(messages.say, "publish")

MOST_BYTES = 14_500_000
"""Of an excerpt with its checksums. A repository's reviewers agreed to 15 MB; the rest is for pictures beside it."""
ARCHIVE_SUM = "archive.sha256"
_SUMMARIES = ("summary.csv", "summary.json")
_PLAIN_MOST_BYTES = 1_000_000
"""A larger summary goes in packed: whoever works with that many rows has a program that unpacks it."""
_SHOWN = ("environment.json", "repeat.sh", "CITATION.cff", "LICENSE-DATA")
_MARKUP = re.compile(r"[\\`*_\[\]<>|#&]")
SPARE_BYTES = 16_384
"""For README and checksums, which say what was chosen and so come last."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Where the rest is: a file's name, its SHA-256 in hexadecimal, its size."""

    name: str
    sha256: str
    size_bytes: int


def files(made: RunBundle, archive: Archive, most_bytes: int = MOST_BYTES) -> dict[str, bytes]:
    """Return the files of an excerpt by name, without its checksums. Raises BadInputError where none would fit."""
    shown = {name: _shown(content, made.run) for name, content in made.archived.items() if name.endswith(".html")}
    pages = {name: content for name, content in shown.items() if _is_page(name)}
    summaries = dict(_summary(name, made.archived[name]) for name in _SUMMARIES)
    instead = {name: _elsewhere(name, made, archive, sorted(summaries)) for name in pages}
    found = {
        REPORT: shown[REPORT],
        **{name: made.archived[name] for name in _SHOWN},
        **summaries,
        **instead,
        RUN: made.run.to_json().encode(),
        ARCHIVE_SUM: f"{archive.sha256}  {archive.name}\n".encode(),
    }
    room_bytes = most_bytes - SPARE_BYTES - sum(map(len, found.values()))
    if room_bytes < 0:
        raise BadInputError(say("excerpt.too_large", over_bytes=-room_bytes, most_bytes=most_bytes))
    left_out = []
    for name in pages:  # in the report's order: what is asked first comes first
        more_bytes = len(pages[name]) - len(instead[name])
        if more_bytes <= room_bytes:
            found[name] = pages[name]
            room_bytes -= more_bytes
        else:
            left_out.append(name)
    found["README.md"] = _readme(made, archive, pages, sorted(left_out), sorted(summaries))
    return found


def is_elsewhere(name: str, text: str) -> bool:
    """Tell whether this stands in the place of the page of that name, which an excerpt has left in its archive."""
    return f"<title>{escape(name)} is in the archive</title>" in text


def publish(copies: Copies, target: Path, archives: Path, labels: Labels) -> Path:
    """Write an excerpt of one run into `target` and its archive into `archives`; return the archive's path.

    Raises LeakError where a name or a secret is left, BadInputError; then nothing was written.
    """
    (one,) = copies.made
    if not archives.is_dir():
        raise BadInputError(say("excerpt.no_folder", archives=archives))
    if target.resolve() in (archives.resolve(), *archives.resolve().parents):
        raise BadInputError(say("excerpt.archive_inside", archives=archives, target=target))
    made = bundled(one.campaign, labels, _retracted_before(target, one.campaign.campaign_id))
    packed = made.packed(one.campaign)
    archive = Archive(made.run.bundle, hashlib.sha256(packed).hexdigest(), len(packed))
    check = checker(one.redactor)
    with changed(target, RUN) as place:
        root = one.campaign.path.parent
        found = leaks(root, (path for path in sorted(one.campaign.path.rglob("*")) if path.is_file()), check)
        written = files(made, archive)
        put_files(place.root, written)
        found += leaks(place.root, (place.root / name for name in sorted(written)), check)
        if found:
            raise LeakError(list(dict.fromkeys(found)))
        part = archives / f".{archive.name}.part"
        put(part, packed)
        part.replace(archives / archive.name)
    return archives / archive.name


def _mark(folder: Path, run: PublishedRun, because: str, at_utc: str) -> None:
    """Mark the run of an excerpt as not to be relied on: on its pages, in README.md and run.json."""
    check_unretracted(run)
    marked = run.model_copy(update={"retracted": Retraction(because=because, at_utc=at_utc)})
    files = marked_files(folder, marked, on_site=False)
    head, rest = files["README.md"].split(b"\n", 1)
    files["README.md"] = b"\n".join((head, b"", _warning(marked).encode(), rest))
    put_files(folder, files)


def _retracted_before(target: Path, campaign_id: str) -> Retraction | None:
    """Return the retraction of what is there, if it is of this run: publishing again does not undo it."""
    path = target / RUN
    if not path.is_file():
        return None
    before = PublishedRun.parse(path.read_bytes(), source=str(path))
    return before.retracted if before.campaign_id == campaign_id else None


def _shown(page: bytes, run: PublishedRun) -> bytes:
    """Return a page as the archive has it; where the run was retracted, with the banner."""
    return framed(page.decode(), run, on_site=False).encode() if run.retracted else page


def _warning(run: PublishedRun) -> str:
    """Return what README.md says of a retraction, or nothing."""
    if run.retracted is None:
        return ""
    return say("excerpt.retracted", at_utc=run.retracted.at_utc, because=_plain(run.retracted.because))


def _is_page(name: str) -> bool:
    return name.startswith(f"{Path(REPORT).stem}-") and name.endswith(".html")


def _summary(name: str, content: bytes) -> tuple[str, bytes]:
    """Return a summary with its name, packed where it is large."""
    return (f"{name}.gz", squeezed(content)) if len(content) > _PLAIN_MOST_BYTES else (name, content)


def _elsewhere(name: str, made: RunBundle, archive: Archive, summaries: list[str]) -> bytes:
    page = templates().get_template("elsewhere.html.j2")
    size_bytes = len(made.archived[name])
    return page.render(name=name, run=made.run, archive=archive, size_bytes=size_bytes, summaries=summaries).encode()


def _readme(
    made: RunBundle, archive: Archive, pages: Mapping[str, bytes], left_out: list[str], summaries: list[str]
) -> bytes:
    page = templates().get_template("excerpt.md.j2")
    run = made.run
    text = page.render(
        run=run,
        warning=_warning(run),
        title=_plain(run.title),
        headline=_plain(run.headline),
        validity=_plain(run.validity).rstrip("."),
        withheld="; ".join(_plain(f"{layer} ({why})") for layer, why in run.withheld.items()),
        archive=archive,
        kept=sorted(set(pages) - set(left_out)),
        left_out={name: len(pages[name]) for name in left_out},
        summaries=summaries,
        sums=SUMS,
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip() + "\n").encode()


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, whatever a title says."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


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
        _mark(place.root, run, because, at_utc)
    return run.campaign_id
