# SPDX-License-Identifier: BSD-3-Clause
"""`cadge publish --preview SITE`: a site, served to this machine alone."""

from __future__ import annotations

import functools
import http.server
import os
import signal
from pathlib import Path

import click

from cadge_harness.errors import EXIT_OK, UnfitError


class _OneFolder(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path: str) -> str:
        """Return the file of an address; one that a link leads out of the site to is not there."""
        found = Path(super().translate_path(path))
        inside = found.resolve().is_relative_to(Path(self.directory).resolve())
        return str(found) if inside else os.devnull + "/"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's signature
        """Say nothing of each request."""


def serve(site: Path, port: int) -> int:
    """Serve a site until Ctrl-C, and return the exit code. port: 0 for a free one."""
    from cadge_analysis.publish.site import Site

    Site(site).about()
    handler = functools.partial(_OneFolder, directory=str(site))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UnfitError(f"cannot listen on port {port}: {error.strerror}") from error
    with server:
        click.echo(f"http://127.0.0.1:{server.server_address[1]}/  (Ctrl-C ends it)")
        # a shell starts what it runs in the background with SIGINT ignored, and Python leaves it so
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("ended", err=True)
    return EXIT_OK
