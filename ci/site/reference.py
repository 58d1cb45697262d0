# SPDX-License-Identifier: BSD-3-Clause
"""The reference: pages made of the files that say what there is (sweeps, layers, patterns, floors) and of the parser.

Nothing of it is written by hand, so that it is never out of date; each page is a function of those files alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from cadge_analysis.tables import TABLES
from cadge_cli.cli import COMMANDS, GROUPS, cadge, command_of
from cadge_cli.commands.sweeps import TOPICS
from cadge_harness.errors import EXIT_CODES
from cadge_results import PatternFile, read_workloads
from cadge_results.formats.sweep import SweepFile
from cadge_results.plugins.catalogue import load_yaml
from cadge_results.plugins.layerfile import LayerFile

MADE = "This page is made of {} when the site is built.\n\n"


def escaped(text: object) -> str:
    """Return words in which nothing is markup, fit for a table's cell too; code in backticks stays code."""
    parts = re.split(r"(`[^`]*`)", " ".join(str(text).split()))
    kept = (part if part.startswith("`") else re.sub(r"([\\*_\[\]<>#$^~{}])", r"\\\1", part) for part in parts)
    return "".join(kept).replace("|", r"\|")


def code(text: object) -> str:
    """Return text as code."""
    return f"`{text}`".replace("|", r"\|")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; nothing where it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    columns = list(heads)
    return "\n".join([f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *lines]) + "\n\n" if lines else ""


def sweeps(root: Path) -> str:
    """Return the page of the sweeps: what each asks, in the order of `cadge sweeps`, and its file."""
    found = {path.stem: path for path in sorted((root / "harness/sweeps").glob("*.yml"))}
    files = {name: load_yaml(path, SweepFile) for name, path in found.items()}
    text = "# Sweeps\n\n" + MADE.format("`harness/sweeps/*.yml`")
    text += "`cadge run --sweep NAME` measures one; `cadge plan --sweep NAME` says what it takes on this machine.\n\n"
    for topic, head in TOPICS.items():
        mine = {name: file for name, file in files.items() if file.topic == topic}
        if mine:
            text += f"**{escaped(head)}**\n\n{_sweep_table(mine)}"
    for name, path in found.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        body = "\n".join(line for line in lines if not line.startswith(("---", "# yaml-language-server")))
        text += f"## {name}\n\n{escaped(files[name].title)}.\n\n```yaml\n{body}\n```\n\n"
    return text


def _sweep_table(files: Mapping[str, SweepFile]) -> str:
    """Return the table of the sweeps of one topic."""
    return table(
        ("sweep", "question", "patterns", "launches", "hosts"),
        (
            (
                f"[{name}](#{name})",
                escaped(file.title),
                ", ".join(dict.fromkeys(one.pattern for one in file.patterns)),
                ", ".join(map(str, file.looks)) if file.looks else str(file.launches),
                str(file.hosts),
            )
            for name, file in files.items()
        ),
    )


def layers(root: Path) -> str:
    """Return the page of the layers, shims last: what each is, where it runs, what it cannot do and why."""
    paths = sorted((root / "layers").glob("*/*.layer.yml"), key=lambda path: (path.parent.name == "shims", str(path)))
    files = [load_yaml(path, LayerFile) for path in paths]
    text = "# Layers\n\n" + MADE.format("`layers/*/*.layer.yml`")
    text += "`cadge layers` says which of them are here, and why others are absent.\n\n"
    text += table(
        ("layer", "title", "library", "RPC", "places"),
        (
            (f"[{one.name}](#{one.name})", escaped(one.title), escaped(one.library), one.rpc, ", ".join(one.places))
            for one in files
        ),
    )
    return text + "".join(_layer(one) for one in files)


def _layer(one: LayerFile) -> str:
    facts = {
        "style": one.style,
        "substrate": one.substrate,
        "library": f"{escaped(one.library)} ({escaped(one.licence)})",
        "started": "by `mpirun`" if one.launcher == "mpirun" else "directly",
        "reliable": "yes" if one.reliable else "no: what may be lost is counted",
        "Debian packages": ", ".join(map(code, one.packages.run)),
        "variables that a sweep may set": ", ".join(code(f"{name}*") for name in one.variables),
    }
    text = f"## {one.name}\n\n{escaped(one.title)}. {escaped(one.notes)}\n\n"
    text += table(("what", "which"), ((name, value) for name, value in facts.items() if value))
    if one.limits:
        text += "What it does not do:\n\n"
        text += table(("where", "why"), ((_where(item.when.model_dump()), escaped(item.reason)) for item in one.limits))
    if one.known_faults:
        text += "Tests of the conformance suite that the library itself fails:\n\n"
        text += table(
            ("test", "where", "why"),
            ((code(item.test), item.place or f"over {item.over}", escaped(item.reason)) for item in one.known_faults),
        )
    if one.beside_native:
        text += (
            "What share of a plain program's figure over the same library was found, which marks ranks in reports:\n\n"
        )
        text += table(
            ("pattern", "up to", "share", "measured", "measure it"),
            (
                (
                    ", ".join((item.pattern, *(f"{name} {value}" for name, value in item.parameters.items()))),
                    f"{item.bytes_max} B",
                    " to ".join(f"{end:g}" for end in dict.fromkeys(item.ratio)),
                    escaped(item.measured),
                    code(item.command),
                )
                for item in one.beside_native
            ),
        )
    if one.natives:
        text += "Native tools that `cadge crosscheck` runs beside it:\n\n"
        text += table(
            ("tool", "pattern", "note"),
            ((code(item.tool), item.pattern, escaped(item.more or item.note)) for item in one.natives),
        )
    return text


def _where(when: Mapping[str, object]) -> str:
    """Return which points a limit is of."""
    parameters = when["parameters"]
    assert isinstance(parameters, dict)
    said = {name: value for name, value in when.items() if name != "parameters" and value is not None}
    return ", ".join(f"{name} {escaped(value)}" for name, value in {**said, **parameters}.items()) or "everywhere"


def patterns(root: Path) -> str:
    """Return the page of the patterns: what each measures and how, its roles, parameters and quantities."""
    known = read_workloads(root / "harness")
    text = "# Patterns\n\n" + MADE.format("`harness/patterns/*/*.pattern.yml`")
    text += "`cadge patterns NAME` shows the same; `cadge patterns --here` says which layers run them on a testbed.\n\n"
    text += table(
        ("pattern", "title", "what it measures"),
        (
            (f"[{name}](#{name})", escaped(known.patterns[name].title), escaped(known.patterns[name].summary))
            for name in known.ordered
        ),
    )
    return text + "".join(_pattern(name, known.patterns[name]) for name in known.ordered)


def _pattern(name: str, file: PatternFile) -> str:
    text = f"## {name}\n\n{escaped(file.summary)}\n\n"
    how = file.measures.model_dump()
    text += "".join(f"**{escaped(key.capitalize())}.** {escaped(value)}\n\n" for key, value in how.items() if value)
    text += table(
        ("role", "endpoints", "peers"),
        ((role, escaped(one.count), ", ".join(one.peers)) for role, one in file.roles.items()),
    )
    text += table(("parameter", "unit", "allowed", "default"), _parameters(file))
    text += table(
        ("quantity", "what", "unit", "better"),
        (
            (code(key), f"{escaped(one.title)} ({one.kind})", one.unit, one.better)
            for key, one in file.quantities.items()
        ),
    )
    beside = f"The form `{file.floor.form}`." if file.floor.form else f"None: {escaped(file.floor.none)}."
    return text + f"**Floor.** {beside}\n\n"


def _parameters(file: PatternFile) -> Iterator[tuple[str, ...]]:
    for name, one in file.parameters.items():
        allowed = ", ".join(one.values) or f"{one.min:,} to {one.max:,}"
        default = f"that of `{one.follows}`" if one.follows else "must be given" if one.default is None else one.default
        yield code(name), one.unit or "", escaped(allowed), escaped(default)


def floors(root: Path) -> str:
    """Return the page of the floors: what each moves, where, in which way of waiting, and whether it divides."""
    known = read_workloads(root / "harness")
    text = "# Floors\n\n" + MADE.format("`harness/floors/*.yml`")
    text += "What the machine itself can do, measured in the same campaign by programs without a layer.\n\n"
    text += table(
        ("floor", "title", "places", "waits", "forms", "role"),
        (
            (
                name,
                escaped(one.title),
                ", ".join(one.places),
                ", ".join(one.waits),
                ", ".join(one.forms),
                "reference: shown beside" if one.reference else "floor: divides",
            )
            for name, one in sorted(known.floors.items())
        ),
    )
    return text + "".join(f"## Form {name}\n\n{escaped(one.summary)}\n\n" for name, one in sorted(known.forms.items()))


def commands() -> str:
    """Return the page of the commands, in the groups of `cadge --help`."""
    text = "# Commands\n\n" + MADE.format("the parser of `cadge`") + f"{escaped(cadge.help)}\n\n"
    for group, mine in GROUPS.items():
        rows = ((f"[{name}](#cadge-{name})", escaped(what)) for name, what in mine.items())
        text += f"**{group}**\n\n{table(('command', 'what it does'), rows)}"
    for name in COMMANDS:
        command = command_of(name)
        assert command is not None, name
        text += _command(f"cadge {name}", command)
    return text


def _command(path: str, command: click.Command, depth: int = 2) -> str:
    """Return a command with its options, and its own commands below it."""
    context = click.Context(command, info_name=path)
    text = f"{'#' * depth} {path}\n\n```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n\n"
    text += _help(command.help) + table(("option", "what it does"), _options(command, context)) + _help(command.epilog)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            text += _command(f"{path} {name}", inner, depth + 1)
    return text


def _help(given: str | None) -> str:
    r"""Return help as paragraphs; those that begin with \b keep their lines, as in a terminal."""
    text = ""
    for part in re.split(r"\n\s*\n", (given or "").strip("\n")):
        if part.strip().startswith("\b"):
            kept = part[part.index("\b") + 1 :].strip("\n")
            text += f"```text\n{kept}\n```\n\n"
        elif part.strip():
            text += f"{escaped(part)}\n\n"
    return text


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for one in command.get_params(context):
        record = one.get_help_record(context)
        if record is not None:
            yield code(record[0]), escaped(record[1])


def tables() -> str:
    """Return the page of the tables: the columns that they have in every campaign."""
    text = "# Tables\n\n" + MADE.format("`analysis/src/cadge_analysis/cells/columns.yml`")
    text += "`cadge query --tables` shows the same, with the columns that patterns add.\n\n"
    for one in TABLES.values():
        text += f"## {one.name}\n\n{escaped(one.about[:1].upper() + one.about[1:])}.\n\n"
        text += table(
            ("column", "kind", "meaning"),
            ((code(column.name), column.kind, escaped(column.about)) for column in one.fixed),
        )
    return text


def exit_codes() -> str:
    """Return the page of the exit codes."""
    text = "# Exit codes\n\n" + MADE.format("`harness/src/cadge_harness/errors.py`")
    text += "Every command ends with one of these, and with a sentence on standard error where it is not 0.\n\n"
    return text + table(("code", "meaning"), ((str(number), escaped(what)) for number, what in EXIT_CODES.items()))


def made(root: Path) -> dict[str, str]:
    """Return every page that is made, by its place in the site."""
    return {
        "reference/sweeps.md": sweeps(root),
        "reference/layers.md": layers(root),
        "reference/patterns.md": patterns(root),
        "reference/floors.md": floors(root),
        "reference/tables.md": tables(),
        "reference/commands.md": commands(),
        "reference/exit-codes.md": exit_codes(),
    }
