# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands share. Each can be given in the environment as well."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from cadge_cli.output import Output
from cadge_cli.words import say
from cadge_harness.errors import NothingSelectedError, UnfitError, UsageError

if TYPE_CHECKING:
    from cadge_harness.plan.narrow import Narrowing
    from cadge_results import Campaign
    from cadge_results.formats.base import Place, Wait

STDOUT = Path("/dev/stdout")
REPORTS = (".html", ".htm")
"""How files end that can only be reports."""
PLACES: tuple[Place, ...] = ("within", "between", "self")
WAITS: tuple[Wait, ...] = ("poll", "block")
POINT_MS_MAX = 600_000
_GIVEN = {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
CALLED_AS = "CADGE_CALLED_AS"
"""Variable by which a command of ours that starts another says what the user typed for cadge."""

EXAMPLES = "\b\nExamples:\n"
"""How a command's epilog begins; click leaves lines after \\b as they are."""

_F = TypeVar("_F", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., int]], Callable[..., int]]


def together(*options: Decorator) -> Decorator:
    """Add options, in their order."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def gathered(name: str, make: Callable[..., object], *options: Decorator) -> Decorator:
    """Add options, and give the command one parameter in place of theirs: `name`, which `make` makes of them."""
    names = signature(make).parameters

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def gather(*arguments: Any, **given: Any) -> int:  # noqa: ANN401 - as click hands them over
            made = make(**{one: given.pop(one) for one in names if one in given})
            return command(*arguments, **{name: made}, **given)

        return together(*options)(gather)

    return decorate


def answers(command: Callable[..., int]) -> Callable[..., int]:
    """Add --json, and give the command the `output` that it answers by. --json counts before its name as well.

    Raises UsageError where what it writes itself, the parameter `out`, would be mixed with the answer.
    """

    @wraps(command)
    def gathered(*arguments: Any, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - as click hands them over
        return command(*arguments, output=_output_of(click.get_current_context(), as_json, given.get("out")), **given)

    return click.option(
        "--json", "as_json", is_flag=True, help="One JSON object on stdout: {ok, code, data, problems}."
    )(gathered)


inventory_option = click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    envvar=["CADGE_INVENTORY", "INVENTORY"],
    help="Ansible inventory of a cluster, with a group `cadge` (see `cadge testbed example`).",
)


testbed_options = together(
    click.option(
        "--testbed",
        "testbed_name",
        default="auto",
        show_default=True,
        metavar="auto|local|emulated|slurm[:DEVICE]",
        envvar=["CADGE_TESTBED", "TESTBED"],
        help="Hosts: local (this machine), emulated (network namespaces on it) or slurm (nodes of the allocation, with "
        "their data device). auto: slurm in an allocation, else emulated where possible.",
    ),
    inventory_option,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """Where and how a command measures, and where it stores that."""

    testbed_name: str
    inventory: Path | None
    tune: bool
    queue: bool
    results: Path | None
    report: bool = False
    selftest_id: str | None = None
    """The self-test that verdicts are to rest on; None: the newest is kept, and they rest on none."""


selftest_option = click.option(
    "--selftest",
    "selftest_id",
    metavar="ID|last",
    envvar="CADGE_SELFTEST",
    help="Show verdicts only if this self-test passed, on the same build and machine.",
)
"""Beside measuring_options, where a campaign begins: a later resume keeps what counted then."""


def patterns_option(more: str) -> Callable[[_F], _F]:
    """Add --patterns; `more` says which, where it is not given."""
    text = f'Only these patterns, e.g. "rpc stream"; default: {more}.'
    return click.option("--patterns", multiple=True, metavar="NAMES", envvar="CADGE_PATTERNS", help=text)


def sizes_option(more: str) -> Callable[[_F], _F]:
    """Add --sizes; `more` says which, where it is not given."""
    text = f'Message sizes, e.g. "8B 4KiB"; default: {more}.'
    return click.option("--sizes", multiple=True, metavar="SIZES", envvar="CADGE_SIZES", help=text)


def places_option(more: str, places: Sequence[Place] = PLACES) -> Callable[[_F], _F]:
    """Add --places, of these; `more` says which, where it is not given."""
    about: dict[Place, str] = {
        "within": "within (one host)",
        "between": "between (hosts)",
        "self": "self (one process)",
    }
    text = f"Where: {', '.join(about[place] for place in places)}, or several; default: {more}."
    return click.option("--places", multiple=True, metavar="|".join(places), envvar="CADGE_PLACES", help=text)


def asked_of(
    *,
    patterns: tuple[str, ...],
    sizes: tuple[str, ...],
    launches: str | None,
    duration: str | None,
    places: tuple[str, ...],
    mode: tuple[str, ...],
) -> Narrowing:
    """Read what was asked for. Raises UsageError with what is allowed, and an example."""
    from cadge_harness.plan.narrow import Narrowing

    return Narrowing(
        patterns=listed("--patterns", patterns, "rpc stream"),
        sizes=sizes_of(sizes),
        launches=_launches(launches),
        duration_ms=_duration_ms(duration),
        places=tuple(one for one in PLACES if one in words_of("--places", places, PLACES)),
        waits=tuple(one for one in WAITS if one in words_of("--mode", mode, WAITS)),
    )


def listed(option: str, texts: tuple[str, ...], example: str) -> tuple[str, ...]:
    """Return the words of an option, each once. Raises UsageError where it was given and has none."""
    words = tuple(dict.fromkeys(split_names(texts)))
    if texts and not words:
        raise UsageError(say("general.names_nothing", option=option, example=example))
    return words


def words_of(option: str, texts: tuple[str, ...], known: Sequence[str]) -> tuple[str, ...]:
    """Return the words of an option, all of them known. Raises UsageError."""
    words = listed(option, texts, " ".join(known[:2]))
    for word in words:
        if word not in known:
            raise UsageError(say("general.none_of", option=option, word=word, all=known, first=known[0]))
    return words


def sizes_of(texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return sizes in bytes, each once, in the order given. Raises UsageError."""
    from cadge_results.units import parse_bytes

    try:
        return tuple(dict.fromkeys(parse_bytes(text) for text in listed("--sizes", texts, "8B 4KiB")))
    except ValueError as error:
        raise UsageError(f"--sizes: {error}") from error


def _launches(text: str | None) -> int | None:
    from cadge_results.formats.sweep import LAUNCHES_MAX

    if text is None:
        return None
    if not (text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= LAUNCHES_MAX):
        raise UsageError(say("options.launches", text=text, most=LAUNCHES_MAX))
    return int(text)


def _duration_ms(text: str | None) -> int | None:
    from cadge_results.formats.sweep import POINT_MS_MIN
    from cadge_results.units import parse_ms

    if text is None:
        return None
    try:
        duration_ms = parse_ms(text)
    except ValueError as error:
        raise UsageError(f"--duration: {error}") from error
    if not POINT_MS_MIN <= duration_ms <= POINT_MS_MAX:
        raise UsageError(say("options.duration", least=POINT_MS_MIN, most=POINT_MS_MAX // 1000, text=text))
    return duration_ms


trace_option = click.option(
    "--trace",
    "log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="CADGE_TRACE",
    help="Replay a web server's log (Common or Combined Log Format, plain or gzip) in a sweep of the pattern press. "
    "Only lengths and the order of requests are kept.",
)
looks_option = click.option(
    "--looks",
    metavar="N,N,...",
    envvar="CADGE_LOOKS",
    help="Stop early: after each of these numbers of launches, e.g. 9,12,18,30, drop what is decided.",
)


sweep_options = together(
    click.option(
        "--sweep",
        "sweep_name",
        default="default",
        show_default=True,
        metavar="NAME|FILE",
        envvar=["CADGE_SWEEP", "SWEEP"],
        help="Sweep to measure: a name from `cadge sweeps`, or a file.",
    ),
    click.option(
        "--layers",
        "layer_names",
        multiple=True,
        metavar="NAMES",
        envvar=["CADGE_LAYERS", "LAYERS"],
        help='Only these layers, e.g. "sockets-tcp native-ucx"; "all": also those that the sweep leaves out.',
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**63 - 1), envvar="CADGE_SEED", help="Seed of the random order of launches."
    ),
    click.option(
        "--budget", metavar="TIME", envvar="CADGE_BUDGET", help="Longest time for the whole sweep, e.g. 5min."
    ),
)


queue_option = click.option(
    "--queue/--no-queue",
    default=True,
    envvar="CADGE_QUEUE",
    help="Wait for another sweep on this machine, or measure at the same time: both then disturb each other, "
    "and both reports say so.",
)
_report_option = click.option("--report/--no-report", default=True, help="Make the report at the end.")
_tune_option = click.option(
    "--tune/--no-tune",
    default=False,
    envvar=["CADGE_TUNE", "TUNE"],
    help="Tune the nodes during the campaign, and restore them (needs root there).",
)


def _absolute(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Return a path that programs understand which run in folders of their own."""
    return path.absolute() if path is not None else None


results_option = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="CADGE_RESULTS",
    callback=_absolute,
    help="Folder of campaigns (default: results/campaigns in the folder of Cadge).",
)
hosts_options = gathered("how", MeasureOptions, testbed_options, _tune_option, queue_option, results_option)
"""Say where and how to measure, and where that goes."""


measuring_options = together(_report_option, hosts_options)
"""The same, and what becomes of a campaign afterwards."""


asking_options = gathered(
    "asked",
    asked_of,
    patterns_option("those of the sweep"),
    sizes_option("those of the sweep"),
    click.option(
        "--launches",
        metavar="N",
        envvar="CADGE_LAUNCHES",
        help="Launches of each point, in fresh processes, e.g. 9. The budget grows to fit.",
    ),
    click.option(
        "--duration",
        metavar="TIME",
        envvar="CADGE_DURATION",
        help="Measured time of each launch at a point, e.g. 100ms. Without --budget, there is no time limit.",
    ),
    places_option("those of the sweep"),
    click.option(
        "--mode",
        multiple=True,
        metavar="poll|block",
        envvar="CADGE_MODE",
        help="How endpoints wait: poll (spin), block (sleep), or both; default: as the sweep says.",
    ),
)
"""Say what is measured in place of what the sweep says."""


def out_option(*names: str, text: str = "File to write.") -> Callable[[_F], _F]:
    """Add an option for an output, the parameter `out`; `names` say what it is called, -o and --output where none are.

    `-` is stdout. A folder that is not there, or a folder itself, is refused before anything is computed.
    """
    kind = click.Path(path_type=Path, readable=False)
    return click.option(*(names or ("-o", "--output")), "out", type=kind, callback=_with_a_folder, help=text)


def _with_a_folder(_ctx: click.Context, _parameter: click.Parameter, out: Path | None) -> Path | None:
    return writable(out)


def writable(out: Path | None) -> Path | None:
    """Return an output's path, stdout's for `-`. Raises UnfitError where no file can be made there."""
    if out is None or str(out) == "-":
        return out and STDOUT
    if out.is_dir():
        raise UnfitError(say("options.is_folder", out=out))
    if not out.parent.is_dir():
        raise UnfitError(say("options.no_folder", out=out, parent=out.parent))
    return out


def opened(results: Path | None, campaign: str, *, measured: bool = True) -> Campaign:
    """Return a campaign by what a user calls it, of the folder of --results. Raises cadge_results.ResultsError."""
    from cadge_harness.paths import find_checkout
    from cadge_results import Store

    return Store(results or find_checkout().campaigns).open(campaign, measured=measured)


def with_launches(campaign: Campaign) -> Campaign:
    """Return a campaign that has launches. Raises NothingSelectedError for another one."""
    if not campaign.launch_ids():
        raise NothingSelectedError(say("general.no_launches", campaign_id=campaign.campaign_id))
    return campaign


def _output_of(ctx: click.Context, as_json: bool, out: Path | None = None) -> Output:
    """Return where a command answers: see `answers`."""
    from cadge_results import own_descriptor  # slow, and --help does without
    from cadge_results.command import WHAT, WHERE, Caller, called

    parent = ctx.find_root().obj or {}
    given = _given(ctx, (*WHERE, *WHAT))
    typed = (*parent.get("argv", ()), *_of_environment(ctx))
    called(Caller(program=_program(), given=given, options_of=_options_of, typed=typed))
    output = Output(as_json=as_json or bool(parent.get("json")))
    out = STDOUT if str(out) == "-" else out
    if output.as_json and out is not None and own_descriptor(out) == 1:
        raise UsageError(say("options.another_file", out=out))
    return output


def as_called() -> dict[str, str]:
    """Return the environment for another command of ours: it says to run what the user calls cadge."""
    return {**os.environ, CALLED_AS: _program()}


def _program() -> str:
    """Return what the user types for cadge: its name alone where that finds this one."""
    typed = os.environ.get(CALLED_AS) or sys.argv[0]
    found = shutil.which("cadge")
    if Path(typed).name != "cadge" or (found is not None and Path(found).resolve() == Path(typed).resolve()):
        return "cadge"
    return typed


def _given(ctx: click.Context, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the words of each option that was given and that further commands are to keep."""
    found: dict[str, tuple[str, ...]] = {}
    for parameter in ctx.command.params:
        name = next((one for one in parameter.opts if one in names), None)
        if name and ctx.get_parameter_source(parameter.name or "") in _GIVEN:
            found[name] = _words(ctx, parameter, name)
    return found


def _of_environment(ctx: click.Context) -> tuple[str, ...]:
    """Return the words of each option that a variable gave, as make's command line does."""
    return tuple(
        word
        for parameter in ctx.command.params
        if ctx.get_parameter_source(parameter.name or "") is ParameterSource.ENVIRONMENT
        for word in _words(ctx, parameter, parameter.opts[-1])
    )


def _words(ctx: click.Context, parameter: click.Parameter, name: str) -> tuple[str, ...]:
    value = ctx.params[parameter.name or ""]
    if isinstance(value, bool):
        return (name,) if value else tuple(parameter.secondary_opts[:1])
    several = value if isinstance(value, tuple) else (value,)
    return tuple(word for one in several for word in (name, str(one)))


def _options_of(verb: str) -> tuple[str, ...]:
    """Return the options that a command has; none where there is no such command."""
    from cadge_cli.cli import command_of  # which imports this module

    name, *rest = verb.split()
    found = command_of(name)
    for one in rest:
        found = found.commands.get(one) if isinstance(found, click.Group) else None
    return tuple(option for parameter in found.params for option in parameter.opts) if found is not None else ()


def split_names(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return names given with spaces or commas between them, or as an option each."""
    return tuple(name for value in values for name in re.split(r"[\s,]+", value) if name)


def name_of(given: str, known: Collection[str], what: str, *, before: str = "") -> str:
    """Return a known name that a user gave, with '-' or '_' in it. Raises UsageError where it is unknown.

    before: what a name is written behind, for an example in the error.
    """
    from cadge_results.formats.complaint import nearest

    alike = next((name for name in known if name.replace("_", "-") == given.replace("_", "-")), None)
    if alike is None:
        raise UsageError(f"unknown {what} {given!r}{nearest(given, known, before=before)}")
    return alike


def names_of(given: tuple[str, ...], known: Sequence[str], what: str) -> list[str]:
    """Return the names that a user gave, or all where there are none. Raises UsageError for one that is unknown."""
    names = [name_of(name, known, what) for name in split_names(given)]
    if given and not names:
        raise UsageError(say("options.none_named", what=what, first=known[0]))
    return names or list(known)


def count_of_endpoints(text: str, most: int) -> int:
    """Return a number of endpoints. Raises UsageError."""
    if not text.isdecimal() or not 2 <= int(text) <= most:
        raise UsageError(say("options.endpoints", text=text, most=most))
    return int(text)


def refuse_options(names: Collection[str], why: str) -> None:
    """Refuse on the command line what has no meaning here. Raises UsageError."""
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name in names:
            name = (
                parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name.strip("[].")
            )
            raise UsageError(f"{name} {why}")


def refuse_others(names: Collection[str], why: str) -> None:
    """Refuse on the command line all but these options and --json. Raises UsageError."""
    known = {parameter.name or "" for parameter in click.get_current_context().command.params}
    refuse_options(known - {*names, "as_json"}, why)
