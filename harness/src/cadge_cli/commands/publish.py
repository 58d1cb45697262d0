# SPDX-License-Identifier: BSD-3-Clause
"""`cadge publish`: a static site of campaigns; --preview serves it here, --retract marks a run of it."""

from __future__ import annotations

import functools
import http.server
import os
import re
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.options import EXAMPLES, answers, names_of, refuse_options, refuse_others, results_option, with_launches
from cadge_cli.output import Output, table
from cadge_cli.words import say
from cadge_harness.errors import EXIT_OK, UnfitError, UsageError, printable
from cadge_harness.paths import find_checkout
from cadge_results import Store
from cadge_results.command import command
from cadge_results.publish.redact import CATEGORIES

if TYPE_CHECKING:
    from cadge_analysis.publish.publish import Copies

KEEP = tuple(name for name in CATEGORIES if name != "also")


@click.command(
    epilog=EXAMPLES
    + "  cadge publish --dry-run\n  cadge publish last --to site --cite authors.yml\n"
    + "  cadge publish last --to results/published --archive .\n"
    + "  cadge publish 20261121T013042Z-1f3a9c2e last --to site --keep hosts --yes\n"
    + "  cadge publish --preview site\n"
    + '  cadge publish --retract 20261121T013042Z-1f3a9c2e --to site --because "slow"'
)
@click.argument("campaigns", nargs=-1, metavar="[CAMPAIGN]...")
@click.option("--to", "target", type=click.Path(path_type=Path), metavar="DIR", help="The site; made if it is new.")
@click.option(
    "--archive",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="No site: --to gets report and summaries, at most 15 MB; the archive with the raw data goes here.",
)
@click.option("--keep", multiple=True, metavar="KINDS", help=f"Leave names of these kinds: {', '.join(KEEP)}.")
@click.option("--also", multiple=True, metavar="TEXT", help="Replace this text as well.")
@click.option("--with-logs", "logs", is_flag=True, help="Also publish what programs printed: read it before.")
@click.option("--cite", type=click.Path(path_type=Path), metavar="FILE", help="Authors, as CITATION.cff has them.")
@click.option(
    "--licence",
    type=click.Choice(("CC-BY-4.0", "CC0-1.0")),
    default="CC-BY-4.0",
    show_default=True,
    help="Licence of the data; the program has its own.",
)
@click.option("--site", metavar="NAME", help="Where it was measured, for the index.  [default: the testbed's name]")
@click.option("--title", metavar="TEXT", help="Title of the reports.")
@click.option("--site-title", metavar="TEXT", help="Title of the site.")
@click.option(
    "--url", metavar="ADDRESS", help="Address of the published site, for full links in the feed and the badge's text."
)
@click.option("--dry-run", is_flag=True, help="Show what would be replaced, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--preview",
    "served",
    type=click.Path(path_type=Path),
    metavar="SITE",
    help="Publish nothing: serve this site to this machine only, until Ctrl-C.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    metavar="NUMBER",
    help="With --preview: port to serve at.",
)
@click.option(
    "--retract",
    "retracted",
    metavar="RUN",
    help="Publish nothing: mark this run of the site or excerpt of --to as unreliable. Its files stay.",
)
@click.option("--because", metavar="TEXT", help="With --retract: the reason, which readers see.")
@results_option
@answers
def publish(
    campaigns: tuple[str, ...],
    target: Path | None,
    archive: Path | None,
    keep: tuple[str, ...],
    also: tuple[str, ...],
    logs: bool,
    cite: Path | None,
    licence: str,
    site: str | None,
    title: str | None,
    site_title: str | None,
    url: str | None,
    dry_run: bool,
    yes: bool,
    served: Path | None,
    port: int,
    retracted: str | None,
    because: str | None,
    results: Path | None,
    output: Output,
) -> int:
    """Put campaigns into a static site: reports, raw data, checksums, schemas, citation, an archive for a paper.

    Cadge replaces names of hosts, users, home folders, jobs, devices, addresses and e-mail, and shows them first. It
    finds them by their form or in the campaign; numbers stay. Logs, typed commands and PATH are left out; --with-logs
    adds them. If a name or a known form of secret is left, Cadge publishes nothing (exit code 10). A layer whose file
    says `publish: no` is published without its figures.

    Other runs of the site stay; the same run is updated.
    """
    from cadge_analysis.publish import excerpt
    from cadge_analysis.publish.cite import authors_of
    from cadge_analysis.publish.model import URL
    from cadge_analysis.publish.publish import publish as put
    from cadge_analysis.publish.publish import redacted
    from cadge_analysis.publish.run import Labels
    from cadge_analysis.publish.site import Site
    from cadge_results.publish.published import Rules

    if served is not None:
        refuse_others(("served", "port"), "is not for --preview")
        return _serve(served, port)
    if retracted is not None:
        refuse_others(("retracted", "because", "target"), "is not for --retract")
        return _retract(output, retracted, target, because)
    refuse_options(("port",), "is for --preview")
    refuse_options(("because",), "is for --retract")
    if target is None and not dry_run:
        raise UsageError(say("publish.where"))
    if any(len(text) < 2 for text in also):
        raise UsageError(say("publish.also"))
    if archive is not None and (len(campaigns) > 1 or site_title or url):
        raise UsageError(say("publish.archive"))
    if url is not None and not re.fullmatch(URL, url):
        raise UsageError(say("publish.url", url=printable(url)))
    kept = names_of(keep, KEEP, "kind of names") if keep else []
    authors = authors_of(cite) if cite else ()
    store = Store(results or find_checkout().campaigns)
    found = [store.open(one) for one in dict.fromkeys(campaigns or ("last",))]
    for one in found:
        with_launches(one)
    labels = Labels(
        licence="CC0-1.0" if licence == "CC0-1.0" else "CC-BY-4.0", authors=authors, site=site, title=title, url=url
    )
    rules = Rules(keep=kept, also=also, withheld=_withheld(), logs=logs)
    with redacted(found, rules) as copies:
        shown = _difference(copies)
        data: dict[str, JsonValue] = {
            "campaigns": [one.campaign_id for one in found],
            "replaced": [
                {"campaign": found[number].campaign_id, "kind": kind, "from": old, "to": new, "places": often}
                for (number, kind, old, new), often in sorted(copies.places.items())
            ],
            "site": None if dry_run or target is None else str(target),
        }
        if dry_run or target is None:
            return output.finish(EXIT_OK, data, [*shown, "nothing was written: --dry-run"])
        for line in shown:
            output.say(line)
        if not yes and not output.as_json and sys.stdin is not None and sys.stdin.isatty():
            click.confirm(f"Publish to {target}?", abort=True, err=True)
        if archive is not None:
            packed = excerpt.publish(copies, target, archive, labels)
            return output.finish(EXIT_OK, {**data, "archive": str(packed)}, [f"{target / 'README.md'}", f"{packed}"])
        paths = put(copies, target, labels, site_title)
    lines = [f"{path / 'index.html'}" for path in paths]
    lines += [
        say("publish.stays_retracted", campaign_id=run.campaign_id, day=run.retracted.at_utc)
        for run in Site(target).runs()
        if run.retracted and run.campaign_id in {one.campaign_id for one in found}
    ]
    return output.finish(
        EXIT_OK, data, [*lines, say("publish.look_at_it", command=command("publish", "--preview", str(target)))]
    )


def _retract(output: Output, run: str, site: Path | None, because: str | None) -> int:
    """Put a banner on a run's report and in the index; of an excerpt on its pages and in its README."""
    from cadge_analysis.publish.excerpt import retract as mark

    if site is None:
        raise UsageError(say("publish.retract_where"))
    if because is None or not because.strip():
        raise UsageError(say("publish.because"))
    name = mark(site, run, because.strip(), f"{datetime.now(UTC):%Y-%m-%d}")
    return output.finish(EXIT_OK, {"campaign_id": name, "site": str(site)}, [f"{name} is retracted in {site}"])


def _withheld() -> dict[str, str]:
    """Return the layers whose files say that their figures may not be published, and why."""
    from cadge_harness.plan.catalogue import read_catalogue

    files = [info.file for info in read_catalogue(find_checkout()).layers]
    return {file.name: file.publish_reason for file in files if not file.publish}


def _difference(copies: Copies) -> list[str]:
    """Return what is replaced, a line a name, and what could not be looked for."""
    several = len(copies.made) > 1
    rows = [("kind", "name", "becomes", "places", *(["campaign"] if several else []))]
    for (number, kind, old, new), often in sorted(copies.places.items()):
        name = copies.made[number].campaign.campaign_id
        rows.append((kind, printable(old), new, str(often), *([name] if several else [])))
    lines = table(rows) if len(rows) > 1 else [say("publish.nothing_replaced")]
    if not all(made.logs for made in copies.made):
        lines.append(say("publish.left_out"))
    for made in copies.made:
        withheld: Mapping[str, str] = made.withheld
        lines += [f"without figures: {layer}, as {why}" for layer, why in withheld.items()]
        if made.redactor.untold:
            names = ", ".join(map(printable, made.redactor.untold))
            lines.append(say("publish.ambiguous", names=names))
    return list(dict.fromkeys(lines))


class _OneFolder(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path: str) -> str:
        """Return the file of an address; one that a link leads out of the site to is not there."""
        found = Path(super().translate_path(path))
        inside = found.resolve().is_relative_to(Path(self.directory).resolve())
        return str(found) if inside else os.devnull + "/"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's signature
        """Say nothing of each request."""


def _serve(site: Path, port: int) -> int:
    """Serve a site until Ctrl-C, and return the exit code. port: 0 for a free one."""
    from cadge_analysis.publish.site import Site

    Site(site).about()
    handler = functools.partial(_OneFolder, directory=str(site))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UnfitError(say("publish.port", port=port, error=error.strerror)) from error
    with server:
        click.echo(f"http://127.0.0.1:{server.server_address[1]}/  (Ctrl-C ends it)")
        # a shell starts what it runs in the background with SIGINT ignored, and Python leaves it so
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("ended", err=True)
    return EXIT_OK
