# SPDX-License-Identifier: BSD-3-Clause
"""A site: a folder that holds an index, published runs, and what else a static web server needs.

A change is made in a folder beside it, which takes the site's place at once when it is whole and was checked. What is
not of the site (a repository, pages of others) stays as it is.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from cadge_analysis import messages
from cadge_analysis.blocks.script import tidy
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.publish import bundle
from cadge_analysis.publish.banner import BADGE, badge, framed, templates
from cadge_analysis.publish.cite import citation, licence_text
from cadge_analysis.publish.feed import FEED, feed, new_id
from cadge_analysis.publish.model import PublishedRun, Retraction, SiteFile
from cadge_analysis.publish.run import PAGE, RUN, SUMS, schemas
from cadge_results.errors import FormatError, StoreUnwritableError

say = partial(messages.say, "publish")

MARKER = "cadge-site.json"
_HARMLESS = {".git", ".gitignore", ".gitattributes"}


class Site:
    """A site in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def about(self) -> SiteFile:
        """Return what the site says of itself. Raises BadInputError where the folder is none."""
        marker = self.root / MARKER
        if not marker.is_file():
            raise BadInputError(say("site.no_site", root=self.root, marker=MARKER))
        return SiteFile.parse(marker.read_bytes(), source=str(marker))

    def runs(self) -> tuple[PublishedRun, ...]:
        """Return all runs, the newest first. Raises FormatError."""
        found = [PublishedRun.parse(path.read_bytes(), source=str(path)) for path in self.root.glob(f"runs/*/{RUN}")]
        return tuple(sorted(found, key=lambda run: (run.created_utc, run.campaign_id), reverse=True))

    def folder(self, campaign_id: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / campaign_id

    def run(self, which: str) -> PublishedRun:
        """Return a run by the beginning of its id. Raises NoDataError with the names that are there."""
        found = [run for run in self.runs() if run.campaign_id.startswith(which)]
        if len(found) != 1 or not which:
            what = say("site.several_runs") if found else say("site.no_run")
            names = ", ".join(run.campaign_id for run in (found or self.runs())[:5]) or "none"
            raise NoDataError(f"{what} {which!r} in {self.root}; there: {names}")
        return found[0]

    def put_run(self, campaign_id: str, files: Mapping[str, bytes]) -> None:
        """Put the files of a run in place of those that it had."""
        put_files(self.folder(campaign_id), files)

    def write_rest(self, about: SiteFile) -> list[Path]:
        """Write everything beside the runs, anew; return those files that say something of runs."""
        runs = self.runs()
        about = about.model_copy(update={"feed_id": about.feed_id or new_id(runs)})
        index = tidy(templates().get_template("index.html.j2").render(site=about, runs=runs, schemas=sorted(schemas())))
        cff = citation(about.title, authors=about.authors, licence=about.licence)
        files = {
            MARKER: about.to_json().encode(),
            PAGE: index.encode(),
            FEED: feed(about, runs),
            "CITATION.cff": cff.encode(),
            "LICENSE-DATA": licence_text(about.licence).encode(),
            ".nojekyll": b"",
            **({BADGE: badge(_newest(runs))} if runs else {}),
            **{f"schema/{name}": content for name, content in schemas().items()},
        }
        put_files(self.root, files)
        return [self.root / name for name in (PAGE, FEED, "CITATION.cff")]

    def retract(self, run: PublishedRun, because: str, at_utc: str) -> None:
        """Mark a run as not to be relied on: on all pages of its report and in what the index says, nowhere else."""
        check_unretracted(run)
        marked = run.model_copy(update={"retracted": Retraction(because=because, at_utc=at_utc)})
        files = marked_files(self.folder(run.campaign_id), marked)
        files[BADGE] = badge(marked)
        self.put_run(run.campaign_id, files)


def _newest(runs: tuple[PublishedRun, ...]) -> PublishedRun:
    """Return the newest run that stands, or the newest where none does."""
    return next((run for run in runs if run.retracted is None), runs[0])


def own(folder: Path) -> set[str]:
    """Return the names of the files in a folder, and below it, that its checksums name."""
    listed = folder / SUMS
    if not listed.is_file():
        return set()
    names = {line.partition("  ")[2] for line in listed.read_text(encoding="utf-8").splitlines()}
    return {name for name in names if name and not name.startswith("/") and not {"", ".", ".."} & {*name.split("/")}}


def check_unretracted(run: PublishedRun) -> None:
    """Raise BadInputError where a run was retracted already."""
    if run.retracted is not None:
        raise BadInputError(f"{run.campaign_id} was retracted on {run.retracted.at_utc}: {run.retracted.because}")


def marked_files(folder: Path, marked: PublishedRun, *, on_site: bool = True) -> dict[str, bytes]:
    """Return the files of a run that was retracted, its pages with the banner. Raises FormatError."""
    files = {name: (folder / name).read_bytes() for name in own(folder) if (folder / name).is_file()}
    if not files or bundle.sums(files) != (folder / SUMS).read_bytes():
        raise FormatError(say("site.changed_files", folder=folder, sums=SUMS))
    files[RUN] = marked.to_json().encode()
    for name in (name for name in files if name.endswith(".html")):
        files[name] = framed(files[name].decode(), marked, on_site=on_site).encode()
    return files


def put_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put files, with their checksums, into a folder in place of those that its checksums name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in own(folder) - set(files):
        (folder / name).unlink(missing_ok=True)
    for name, content in {**files, SUMS: bundle.sums(files)}.items():
        put(folder / name, content)


def put(path: Path, content: bytes) -> None:
    """Write a file; one that was there may be a hard link, and is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def check_target(target: Path, marker: str = MARKER) -> Path:
    """Return where a site, or what else `marker` marks, goes; links are followed.

    Raises BadInputError for a folder with something else in it.
    """
    real = target.resolve()
    if real.exists() and not real.is_dir():
        raise BadInputError(say("site.is_file", target=target))
    if real.is_dir() and not (real / marker).is_file():
        others = sorted(path.name for path in real.iterdir() if path.name not in _HARMLESS)
        if others:
            kind = "site" if marker == MARKER else "excerpt"
            raise BadInputError(
                say(
                    "site.holds_others",
                    target=target,
                    kind=kind,
                    marker=marker,
                    others=others[:3],
                    more=" and more" if len(others) > 3 else "",
                )
            )
    if not real.parent.is_dir():
        raise BadInputError(say("site.not_there", parent=real.parent))
    _check_unlinked(real)
    return real


def _check_unlinked(root: Path) -> None:
    """Look for links where files of ours lie: others may write to a site. Raises BadInputError."""
    for folder in (root, root / "runs", *root.glob("runs/*")):
        ours = {"runs", "schema", MARKER, RUN, SUMS} | (own(folder) if not folder.is_symlink() else set())
        for path in (folder, *(folder / name for name in sorted(ours))):
            if path != root and path.is_symlink():
                raise BadInputError(say("site.symbolic_link", path=path))


@contextmanager
def changed(target: Path, marker: str = MARKER) -> Iterator[Site]:
    """Yield the site in a folder beside it, to be changed; it takes its place where nothing is raised.

    Raises BadInputError, StoreUnwritableError.
    """
    real = check_target(target, marker)
    stage = real.with_name(f".{real.name}.{secrets.token_hex(4)}.part")
    try:
        if real.exists():
            linked(real, stage)
        else:
            stage.mkdir()
        yield Site(stage)
        put_in_place(stage, real)
    except OSError as error:
        raise StoreUnwritableError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def put_in_place(new: Path, old: Path) -> None:
    """Put folder `new` in the place of `old`, which is removed where it was there. Raises OSError."""
    if not old.exists():
        new.rename(old)
        return
    if not _exchanged(new, old):
        away = new.with_name(f"{new.name}.old")
        old.rename(away)
        try:
            new.rename(old)
        except OSError:
            away.rename(old)
            raise
        new = away
    shutil.rmtree(new)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; say whether kernel and file system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return (
        rename is not None and rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0
    )


def linked(source: Path, target: Path) -> None:
    """Copy a folder by hard links: no file of it is written into afterwards, only replaced. Raises OSError."""

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other, follow_symlinks=False)
        except OSError:
            shutil.copy2(one, other, follow_symlinks=False)

    shutil.copytree(source, target, symlinks=True, copy_function=link)
