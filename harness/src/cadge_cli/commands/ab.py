# SPDX-License-Identifier: BSD-3-Clause
"""`cadge ab`: two builds of Cadge, two providers or two settings, measured round by round in one campaign."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from cadge_cli.ab_answer import SWEEP, ab_answer, sides_in
from cadge_cli.commands.compare import fail_on_of, fail_on_option, margin_option
from cadge_cli.commands.run import measure
from cadge_cli.options import (
    EXAMPLES,
    MeasureOptions,
    answers,
    asking_options,
    hosts_options,
    listed,
    looks_option,
    out_option,
    refuse_options,
)
from cadge_cli.output import Output
from cadge_cli.sides import margin_of
from cadge_cli.words import say
from cadge_harness.errors import EXIT_BAD_ANSWER, EXIT_OK, UnfitError, UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_harness.plan.describe import describe_layers
from cadge_harness.plan.narrow import Narrowing
from cadge_harness.providers.folder import read_providers
from cadge_harness.providers.pair import BuildPair, LayerPair, check_build, chosen_pair, pair_builds, paired_sweep
from cadge_harness.providers.source import Flags, SourceTree, find_sources, make_builds, uncommitted
from cadge_harness.run.request import Request, read_request

EXIT_CODES = (
    "\n\n\b\nExit codes:\n"
    "  0    measured; nothing that --fail-on names was found\n"
    "  1    measured, but an attempt failed or is unsound\n"
    "  2    a side, a layer or an option is wrong\n"
    "  3    a side does not compile (its error is shown) or cannot be measured\n"
    "  5    no layer is on both sides; or --fail-on slower or faster has no answer:\n"
    "       verdicts are withheld, or launches are too few\n"
    "  6    not complete; `cadge resume` continues\n"
    "  8    --fail-on found what it names\n"
    "  130  stopped by Ctrl-C; `cadge resume` continues"
)
SIDES = ("A", "B")
KINDS = (
    "\b\nA and B are two of a kind:\n"
    "  REVISION, FOLDER    git revisions of this checkout, or folders of sources\n"
    "  provider:NAME       builds of a library, from `cadge provider list`\n"
    "  KEY=VALUE           an option of the layer, from `cadge layers LAYER`\n"
    "  env.NAME=VALUE      a variable that the library reads\n"
    "  kernel.NAME=VALUE   a value of the kernel, restored after each launch\n"
    "  default             the layer without the setting\n\n"
)


@click.command(
    epilog=KINDS
    + EXAMPLES
    + "  cadge ab main HEAD\n"
    + "  cadge ab main . --layers native-ucx,am-ucx --fail-on slower:5%\n"
    + "  cadge ab main HEAD --format markdown -o comparison.md\n"
    + "  cadge ab HEAD HEAD --cflags -O2 --cflags -O3\n"
    + "  cadge ab HEAD~3 HEAD --layers sockets-tcp --patterns rpc --sizes 8B\n"
    + "  cadge ab HEAD HEAD\n"
    + "  cadge ab provider:ucx-1.13.1 provider:ucx-1.22.0 --layers native-ucx,am-ucx\n"
    + "  cadge ab default env.UCX_RNDV_THRESH=8k --layers native-ucx\n"
    + "  cadge ab nodelay=1 nodelay=0 --layers sockets-tcp\n"
    + "  cadge ab default kernel.net.ipv4.tcp_autocorking=0 --layers sockets-tcp"
    + EXIT_CODES
)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--layers",
    "layer_names",
    multiple=True,
    metavar="NAMES",
    envvar=["CADGE_LAYERS", "LAYERS"],
    help='Layers to measure, e.g. "native-ucx,sockets-tcp"; default: native-ucx.',
)
@click.option("--cc", multiple=True, metavar="COMPILER", help="Compiler; given twice, the first is for A.")
@click.option("--cflags", multiple=True, metavar="FLAGS", help="More compiler flags; given twice, the first are for A.")
@margin_option
@fail_on_option
@click.option("--format", "kind", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
@out_option(text="File for the comparison instead of stdout.")
@asking_options
@looks_option
@hosts_options
@answers
def ab(
    first: str,
    second: str,
    layer_names: tuple[str, ...],
    cc: tuple[str, ...],
    cflags: tuple[str, ...],
    margin: str,
    fail_on: tuple[str, ...],
    kind: str,
    out: Path | None,
    asked: Narrowing,
    looks: str | None,
    how: MeasureOptions,
    output: Output,
) -> int:
    """Compare two revisions of Cadge, two providers or two settings, measured in turns.

    Each round of one campaign runs each layer once as A and once as B, so drift of the machine cancels. After 9, 12, 18
    and 30 launches, comparisons that are decided stop (--looks).

    A layer with the same bytes on both sides is not compared; one of them runs twice as an A/A control. A layer that
    one side lacks is listed with the reason.

    `cadge resume`, `cadge report` and `cadge publish` take the campaign as any other. `cadge compare` repeats the
    comparison.
    """
    wanted, share = fail_on_of(fail_on), margin_of(margin)
    request = read_request(SWEEP, looks=looks, asked=asked)
    checkout = request.checkout
    layers = listed("--layers", layer_names, "native-ucx sockets-tcp")
    layers = layers or tuple(entry.layer for entry in request.sweep.layers)
    request.testbed(how.testbed_name, how.inventory, start=False)  # it is wrong before anything is built
    known = describe_layers(request.catalogue, checkout, layers) if "=" in first + second else request.catalogue
    pair: BuildPair | LayerPair | None = chosen_pair(known, read_providers(checkout), (first, second), layers)
    if pair is None:
        pair = _builds(request, (first, second), (_flags(cc, cflags, 0), _flags(cc, cflags, 1)), layers, output)
    else:
        refuse_options(("cc", "cflags"), say("ab.for_builds"))
    request = replace(request, catalogue=read_catalogue(checkout), sweep=paired_sweep(request.sweep, pair, share))
    done = measure(request, output, how)
    if done.code not in (EXIT_OK, EXIT_BAD_ANSWER):
        return output.finish(done.code, done.data, done.lines)
    sides = sides_in(done.campaign) or pair.variants
    found = ab_answer(done.campaign, sides, output, how.results, wanted=wanted, kind=kind)
    lines = [*output.put(found.text, out), *found.more]
    return output.finish(found.code or done.code, {**done.data, **found.data}, lines)


def _flags(cc: tuple[str, ...], cflags: tuple[str, ...], side: int) -> Flags:
    """Return how a side is compiled: what was given once holds for both. Raises UsageError."""
    for option, given in (("--cc", cc), ("--cflags", cflags)):
        if len(given) > len(SIDES):
            raise UsageError(say("ab.twice", option=option))
    of_cc, of_cflags = (given[min(side, len(given) - 1)] if given else "" for given in (cc, cflags))
    return Flags(cc=of_cc, cflags=of_cflags)


def _builds(
    request: Request,
    sides: tuple[str, str],
    flags: tuple[Flags, Flags],
    layers: tuple[str, ...],
    output: Output,
) -> BuildPair:
    """Build both sides, and find and say what differs. Raises UsageError, UnfitError, NothingSelectedError."""
    checkout: Checkout = request.checkout
    for name in layers:
        if request.catalogue.get(name).build is not None:
            raise UsageError(say("ab.own_build", layer=name))
    first, second = sides
    trees = find_sources(checkout, first), find_sources(checkout, second)
    if not checkout.driver.is_file():
        raise UnfitError(say("run.no_build", driver=checkout.driver), commands=(checkout.to_build,))
    for tree in dict.fromkeys(trees):
        if n := uncommitted(tree):
            output.say(say("ab.uncommitted", title=tree.title, n=n, root=tree.root))
    output.say(say("ab.building", titles=[tree.title for tree in trees]))
    one, other = make_builds(checkout, list(zip(trees, flags, strict=True)), layers)
    patterns = [entry.pattern for entry in request.sweep.patterns]
    for tree, made in zip(trees, (one, other), strict=True):
        check_build(made.driver, tree.title, checkout.driver, request.workloads, patterns)
    pair = pair_builds(one, other, layers)
    for line in _about(trees, pair):
        output.say(line)
    return pair


def _about(trees: tuple[SourceTree, SourceTree], pair: BuildPair) -> Iterator[str]:
    """Yield what is compared with what, and what is not."""
    for side, tree, made in zip(SIDES, trees, (pair.first, pair.second), strict=True):
        yield say("ab.side", side=side, title=tree.title, build=made.build.name, made_with=made.build.made_with)
    if pair.driver_differs:
        yield say("ab.driver_differs")
    if not pair.changed:
        yield say("ab.all_equal")
    elif pair.equal:
        yield say("ab.equal", layers=pair.equal)
        yield say("ab.control", layers=pair.control)
    for layer, why in pair.lacks.items():
        yield say("ab.lacks", layer=layer, why=why)
