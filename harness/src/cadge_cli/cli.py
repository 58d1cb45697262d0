# SPDX-License-Identifier: BSD-3-Clause
"""The command `cadge`. Only names stand here: a command's module is imported when the command runs.

So `cadge --help` stays quick. This is also the one place where errors become exit codes.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from cadge_cli.output import silence, unwritten, write_text
from cadge_harness import __version__
from cadge_harness.errors import (
    EXIT_CODES,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_UNFIT,
    EXIT_USAGE,
    UnfitError,
)

TRACEBACK = "cadge-traceback-"
"""How the names of files begin that hold tracebacks."""
TRACEBACK_KEPT_S = 7 * 86400
GROUPS = {
    "Measure": {
        "doctor": "Check this machine and the build, or the hosts of an inventory; change nothing.",
        "quick": "Compare a few layers on this machine, in half a minute.",
        "layers": "List the layers and why some are absent, or show one: where it runs, what it cannot do.",
        "patterns": "List the patterns, and what each of them measures.",
        "sweeps": "List the sweeps and what each asks; show one, or an example with a comment on every key.",
        "plan": "Show what a sweep would measure, and what it would take.",
        "run": "Run a sweep, and make its report.",
        "ab": "Compare two revisions of Cadge, two providers or two settings, measured round by round.",
        "status": "Show the progress of a campaign, from another terminal.",
        "resume": "Run the missing launches of a campaign.",
        "submit": "Submit a sweep as a Slurm job, or the rest of a campaign.",
        "provider": "Add another build of a library, so that both are measured side by side.",
        "testbed": "Start, stop or inspect the emulated testbed; restore nodes after a kill.",
    },
    "Read": {
        "report": "Make the report of a campaign.",
        "compare": "Compare two campaigns, or two layers, point by point, with verdicts; or two points side by side.",
        "history": "Show campaigns over time, point by point, and where they changed.",
        "study": "Compare a campaign with the published figures of a paper; or list what papers claimed.",
        "query": "Ask a question in SQL over many campaigns.",
    },
    "Share": {
        "export": "Write a campaign as a table, as figures for a paper, or as a model that predicts larger ones.",
        "import": "Add results of OSU, IMB, ucx_perftest or fabtests to a report.",
        "publish": "Put campaigns into a static site, without names, with data and citation.",
    },
    "Check": {
        "verify": "Check every file of a campaign, or every number of a report.",
        "health": "Measure every pair of hosts, and name a host or link that is slow.",
        "crosscheck": "Compare layers with the native tools of their libraries: how much Cadge adds.",
        "selftest": "Check that Cadge detects known delays, stalls and settings.",
    },
}
"""The commands as --help shows them."""
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}
_MODULES = {"resume": "run", "import": "import_"}
"""In which module a command stands that is not called as it is."""

EPILOG = "\b\nExamples:\n" + "\n".join(
    f"  {line}"
    for line in (
        "cadge doctor",
        "cadge quick",
        "cadge plan --sweep default",
        "cadge run --sweep smoke",
        'cadge run --layers "sockets-tcp native-ucx" --testbed local',
        "cadge doctor --inventory lab.yml",
        "cadge run --inventory lab.yml --sweep full-calls",
        "cadge status --watch",
        "cadge resume",
        "cadge report -o report.html",
        "cadge run --sweep ablate-peregrine",
    )
)
EPILOG += "\n\n\b\nExit codes:\n" + "\n".join(
    line
    for code, meaning in EXIT_CODES.items()
    for line in textwrap.wrap(meaning, 76, initial_indent=f"  {code:>3}  ", subsequent_indent=" " * 7)
)


def command_of(name: str) -> click.Command | None:
    """Import a command and return it; None where there is none of this name."""
    if name not in COMMANDS:
        return None
    module = importlib.import_module(f"cadge_cli.commands.{_MODULES.get(name, name)}")
    found: click.Command = getattr(module, "import_" if name == "import" else name)
    return found


@contextmanager
def _of_stdout() -> Iterator[None]:
    """Tell a stdout that takes nothing of click's help from other broken pipes: click ends quietly for each of them."""
    try:
        yield
    except OSError as error:
        of_click = any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))
        if of_click and sys.stdout is not None:
            silence(sys.stdout)
            if isinstance(error, BrokenPipeError):
                raise click.exceptions.Exit(EXIT_OK) from error
            raise UnfitError(unwritten(error.strerror or str(error))) from error
        if isinstance(error, BrokenPipeError):
            raise RuntimeError(str(error)) from error  # noqa: TRY004 - no wrong type, but a fault of ours
        raise


class NamedGroup(click.Group):
    """A group of few commands: for one that is not there it names all that are."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of an argument. Raises UsageError."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}; there are: {', '.join(known)}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(click.Group):
    """A group whose commands are imported when they run."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> click.Context:
        """Read the command line."""
        with _of_stdout():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        with _of_stdout():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of a campaign's life."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command. Unknown ones are None, so that click says what is near."""
        return command_of(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), about) for name, about in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command for one that is not there."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = "--help" if args[0] == "help" else next(iter(difflib.get_close_matches(args[0], COMMANDS, n=1)), "")
            hint = f"; did you mean {near}?" if near else f"; there are: {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, "-V", "--version", message="cadge %(version)s")
@click.option(
    "--json", "as_json", is_flag=True, help="Answer with one JSON object on stdout: {ok, code, data, problems}."
)
@click.pass_context
def cadge(ctx: click.Context, as_json: bool) -> None:
    """Compare user-space communication layers: messages, streams and remote calls, measured side by side."""
    ctx.obj = {**(ctx.obj or {}), "json": as_json}


def main(argv: Sequence[str] | None = None) -> None:
    """Run `cadge` and end the process with its exit code."""
    _keep_numbers()
    sys.exit(invoke(sys.argv[1:] if argv is None else argv))


def _keep_numbers() -> None:
    """Give closed standard streams something, so that no file of ours gets their numbers, and their output."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one


def invoke(argv: Sequence[str]) -> int:
    """Run `cadge` and return its exit code; every error becomes a sentence and a code."""
    as_json = "--json" in argv
    try:
        code = cadge.main(list(argv), prog_name="cadge", standalone_mode=False, obj={"argv": tuple(argv)})
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        return _fail(as_json, EXIT_USAGE, _click_message(error), ())
    except (click.Abort, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return _fail(as_json, EXIT_INTERRUPTED, "interrupted", ())
    except Exception as error:  # noqa: BLE001 - the last resort, and the only one
        if not isinstance(exit_code := getattr(error, "exit_code", None), int):
            return _internal(as_json, error)
        return _fail(as_json, exit_code, str(error), getattr(error, "commands", ()))
    return code if isinstance(code, int) else 0


def _remove_old_tracebacks() -> None:
    """Remove this user's tracebacks of more than a week ago."""
    from pathlib import Path  # slow, for --help

    for path in Path(tempfile.gettempdir()).glob(f"{TRACEBACK}*.txt"):
        with suppress(OSError):
            found = path.lstat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > TRACEBACK_KEPT_S:
                path.unlink()


def _internal(as_json: bool, error: Exception) -> int:
    text = "".join(traceback.format_exception(error))
    _remove_old_tracebacks()
    try:
        fd, path = tempfile.mkstemp(prefix=TRACEBACK, suffix=".txt")
        with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        write_text(sys.stderr, text)
        path = "stderr"
    return _fail(as_json, EXIT_INTERNAL, f"internal error: {type(error).__name__}: {error}; traceback in {path}", ())


def _click_message(error: click.ClickException) -> str:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return error.format_message().rstrip(".") + (f" (see: {ctx.command_path} --help)" if ctx is not None else "")


def _fail(as_json: bool, code: int, message: str, commands: tuple[str, ...]) -> int:
    if commands:
        from cadge_results.command import retold  # takes time to import

        commands = tuple(retold(one) for one in commands)
    if as_json:
        answer = {"ok": False, "code": code, "data": None, "problems": [message, *commands]}
        if why := write_text(sys.stdout, json.dumps(answer) + "\n"):
            write_text(sys.stderr, f"cadge: {unwritten(why)}\n")
            code = EXIT_UNFIT
    lines = [f"cadge: {message}", *(f"  {command}" for command in commands)]
    write_text(sys.stderr, "\n".join(lines) + "\n")
    return code


if __name__ == "__main__":
    main()
