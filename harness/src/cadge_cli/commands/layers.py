# SPDX-License-Identifier: BSD-3-Clause
"""`cadge layers`. Apart from `plan`, whose modules take longer to import than this takes to answer."""

from __future__ import annotations

from collections.abc import Iterator

import click
from pydantic import JsonValue

from cadge_cli.options import EXAMPLES, answers
from cadge_cli.output import Output, table, wrapped
from cadge_cli.words import say
from cadge_harness.paths import find_checkout
from cadge_harness.plan.catalogue import LayerInfo, Refusal, read_catalogue
from cadge_harness.plan.describe import describe_layers
from cadge_harness.words import count_of
from cadge_results.command import command
from cadge_results.plugins.layerfile import BesideNative, Limit
from cadge_results.units import format_bytes


@click.command(
    epilog=EXAMPLES + "  cadge layers\n  cadge layers NAME\n"
    "  cadge layers --json | jq '.data.layers[] | select(.available)'"
)
@click.argument("name", required=False)
@answers
def layers(name: str | None, output: Output) -> int:
    """List the layers: what they are, which library serves them, and why some are absent. Or show one of them.

    Of one layer: where it runs, what it cannot do and why, and which variables and options a sweep may set.
    """
    checkout = find_checkout()
    catalogue = read_catalogue(checkout)
    if name is not None:
        info = describe_layers(catalogue, checkout, {catalogue.get(name).name}).get(name)
        file: JsonValue = info.file.to_object()
        return output.finish(0, {**layer_entry(info), "layer": file}, list(page(info)))
    catalogue = describe_layers(catalogue, checkout)
    rows = [("layer", "library", "version", "")]
    data: list[JsonValue] = []
    for info in catalogue.layers:
        entry = layer_entry(info)
        data.append(entry)
        rows.append((info.name, info.library, str(entry["version"] or "-"), str(entry["reason"] or "")))
    ready = sum(1 for info in catalogue.layers if info.absent is None)
    lines = [*table(rows), f"{ready} of {count_of(len(catalogue.layers), 'layer')} built."]
    return output.finish(0, {"layers": data}, [*lines, say("layers.one_of_them", command=command("layers", "NAME"))])


def page(info: LayerInfo) -> Iterator[str]:
    """Yield the page of a layer."""
    file = info.file
    yield from _wrapped("", f"{info.name}: {file.title}")
    yield from _wrapped("", file.notes)
    yield ""
    known = info.description
    here = info.absent.reason if info.absent else info.unloadable or "yes"
    facts = {
        "built here": here,
        "library": " ".join([info.library, known.version if known and known.version else ""]).strip(),
        "licence": file.licence,
        "places": ", ".join(file.places),
        "wait": _waits(info),
        "calls": "its own" if file.rpc == "native" else say("layers.two_messages"),
        "started": "by mpirun" if file.launcher == "mpirun" else "directly",
        "reliable": "yes" if file.reliable else say("layers.lossy"),
        "packages": ", ".join(file.packages.run),
        "variables": ", ".join(f"env.{name}*" for name in file.variables),
        "options": ", ".join(known.options) if known else "",
        "native tools": ", ".join(dict.fromkeys(one.tool for one in file.natives)),
    }
    for head, text in facts.items():
        if text:
            yield from _wrapped(f"{head.ljust(12)}  ", text)
    for title, reasons in (
        ("Refused", [(_when(one), one.reason) for one in file.limits]),
        (
            say("layers.known_faults"),
            [(f"{one.test}, {one.place or one.over}", one.reason) for one in file.known_faults],
        ),
        (
            say("layers.beside_native"),
            [(_beside(one), f"{_share(one)} ({one.measured}); here:  {one.command}") for one in file.beside_native],
        ),
    ):
        if reasons:
            yield ""
            yield title
        for where, why in reasons:
            yield from _wrapped("  ", f"{where}: {why}")
    yield ""
    yield say("layers.patterns_here", command=command("patterns", "--here"), name=info.name)


def _waits(info: LayerInfo) -> str:
    """Return in which wait modes it runs at which places, as the driver found it here."""
    contexts = info.description.contexts if info.description else {}
    places: dict[str, list[str]] = {}
    for (place, wait), context in contexts.items():
        if not isinstance(context, Refusal):
            places.setdefault(wait, []).append(place)
    return "; ".join(f"{wait} ({', '.join(at)})" for wait, at in places.items())


def _when(limit: Limit) -> str:
    """Return which points a limit refuses."""
    given = limit.when.model_dump(exclude_none=True)
    least, parameters = given.pop("min_bytes", None), given.pop("parameters")
    said = [f"{key} {value}" for key, value in {**given, **parameters}.items()]
    return (
        ", ".join([*said, *([say("layers.bytes_or_more", size=format_bytes(least))] if least else [])]) or "everywhere"
    )


def _beside(one: BesideNative) -> str:
    """Return of which points it is known how far they lie off a plain program."""
    given = [f"{key} {value}" for key, value in one.parameters.items()]
    return ", ".join([one.pattern, *one.places, *given, f"messages up to {format_bytes(one.bytes_max)}"])


def _share(one: BesideNative) -> str:
    return " to ".join(f"{end:g}" for end in dict.fromkeys(one.ratio))


def _wrapped(head: str, text: str) -> list[str]:
    return wrapped(text, head, " " * (max(len(head), 4) if head else 0))


def layer_entry(info: LayerInfo) -> dict[str, JsonValue]:
    """Return one layer as `cadge layers --json` shows it."""
    return {
        "name": info.name,
        "style": info.file.style,
        "substrate": info.file.substrate,
        "title": info.file.title,
        "library": info.library,
        "version": info.description.version if info.description else None,
        "available": info.absent is None,
        "reason": info.absent.reason if info.absent else None,
    }
