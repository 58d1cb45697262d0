# SPDX-License-Identifier: BSD-3-Clause
"""Options that say which of a campaign's LogGP fits is meant, and at which size of messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cadge_cli.options import gathered, with_launches
from cadge_cli.words import say
from cadge_harness.errors import UsageError

if TYPE_CHECKING:  # numbers take time to import, and --help does without
    from cadge_analysis.models.choose import ChosenFit
    from cadge_analysis.models.message import Message
    from cadge_results import Campaign


ENDPOINTS = ("2", "16", "128", "1024", "5000")
"""For which a prediction is made where none are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitChoice:
    """Which fit; None stands for any, where there is only one. And the network that it is to hold for."""

    layer: str | None
    place: str | None
    wait_mode: str | None
    choices: tuple[str, ...]
    size: str
    topologies: tuple[str, ...]
    endpoints: tuple[str, ...]

    @property
    def asked(self) -> dict[str, Any]:
        """What a fit has to be to be meant. Raises UsageError for a choice that is none."""
        for text in self.choices:
            if "=" not in text:
                raise UsageError(say("fit.no_choice", text=text))
        choices = dict(text.split("=", 1) for text in self.choices)
        return {"layer": self.layer, "place": self.place, "wait": self.wait_mode, "choices": choices}

    def message(self, chosen: ChosenFit) -> Message:
        """Return what the fit says of messages of the size. Raises UsageError where that is none, AnalysisError."""
        return chosen.message(size_of(self.size))

    def of_campaign(self, campaign: Campaign) -> ChosenFit:
        """Return the fit of a campaign. Raises NothingSelectedError, AnalysisError, cadge_results.ResultsError."""
        from cadge_analysis.models.campaign import fits_of
        from cadge_analysis.models.choose import choose
        from cadge_analysis.stats.load import read

        return choose(fits_of(read(with_launches(campaign))), **self.asked)


def size_of(text: str) -> int:
    """Return bytes for text such as 4KiB. Raises UsageError."""
    from cadge_results.units import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


fit_options = gathered(
    "fit",
    FitChoice,
    click.option("--layer", metavar="NAME", help="Use the fit of this layer, where there are several."),
    click.option("--place", type=click.Choice(["self", "within", "between"]), help="Use the fit of this place."),
    click.option("--mode", "wait_mode", type=click.Choice(["poll", "block"]), help="Use the fit of this mode."),
    click.option(
        "--choice", "choices", multiple=True, metavar="NAME=VALUE", help="Use the fit of this, e.g. touch=none."
    ),
    click.option("--bytes", "size", default="64B", show_default=True, metavar="SIZE", help="Message size."),
    click.option(
        "--topology",
        "topologies",
        multiple=True,
        metavar="NAMES",
        help="Network: star, fat-tree, dragonfly. simgrid: one of them, star; scale: several, all.",
    ),
    click.option(
        "--endpoints",
        multiple=True,
        metavar="NUMBERS",
        help=f'simgrid: least number of hosts, 16; scale: how many, "{" ".join(ENDPOINTS)}".',
    ),
)
