# SPDX-License-Identifier: BSD-3-Clause
"""Which of the fits of a campaign is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError, NoDataError
from cadge_analysis.models.loggp import Fits, HeldOut, LayerFit, Parameters
from cadge_analysis.models.message import Message, message
from cadge_results import ResultsError

say = partial(messages.say, "models")

_HOW = say("choose.how")


@dataclass(frozen=True, slots=True)
class ChosenFit:
    """A fit that gave parameters, whose they are, and what a reader of its predictions should know, for people."""

    parameters: Parameters
    about: str
    notes: tuple[str, ...]
    held_out: tuple[HeldOut, ...]

    def message(self, size: int) -> Message:
        """Return what it says of messages of a size. Raises BadInputError for one that was not measured."""
        least, most = self.parameters.pieces[0].from_bytes, self.parameters.pieces[-1].to_bytes
        if not least <= size <= most:
            raise BadInputError(say("choose.size_unknown", size=size, least=least, most=most))
        return message(self.parameters, size)


def read(path: Path) -> Fits:
    """Read a file of fits (`cadge.loggp/1`). Raises BadInputError, which says what is wrong with it."""
    try:
        return Fits.parse(path.read_bytes(), source=str(path))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from error
    except ResultsError as error:
        raise BadInputError(str(error)) from error


def choose(
    fits: Fits, *, layer: str | None, place: str | None, wait: str | None, choices: Mapping[str, str] | None = None
) -> ChosenFit:
    """Return the one fit of this layer, at this place, in this wait mode and with these choices; None stands for any.

    Raises NoDataError where there is none, or it was refused, and BadInputError where there are several.
    """
    asked = {"layer": layer, "place": place, "wait": wait, **(choices or {})}
    found = [one for one in fits.fits if all(value in (None, _of(one, key)) for key, value in asked.items())]
    if not found:
        of = " ".join(value for value in asked.values() if value)
        there = f"; there are: {_listed(fits.fits)}" if fits.fits else _HOW
        raise NoDataError(
            say(
                "choose.no_fit",
                campaign_id=fits.campaign_id,
                of=f" of {of}" if of else "",
                there=there,
            )
        )
    if len(found) > 1:
        raise BadInputError(say("choose.several_fits", campaign_id=fits.campaign_id, found=_listed(found)))
    model = found[0].model
    if not isinstance(model, Parameters):
        raise NoDataError(say("choose.fit_refused", about=about(found[0]), refused=model.refused))
    notes = () if found[0].place == "between" else (say("choose.within", place=found[0].place),)
    return ChosenFit(model, f"{about(found[0])}, campaign {fits.campaign_id}", notes, found[0].held_out)


def _listed(fits: Sequence[LayerFit]) -> str:
    """Return what fits are of; those that were refused are counted alone, since nothing can be predicted from them."""
    good = [about(one) for one in fits if isinstance(one.model, Parameters)]
    refused = len(fits) - len(good)
    return "; ".join(good + [say("choose.others_refused", n=refused)] * bool(refused))


def _of(fitted: LayerFit, key: str) -> str:
    """Return a fit's layer, place or wait mode, or what it has for a setting or a choice."""
    return str({**fitted.settings, **fitted.choices}.get(key, getattr(fitted, key, "")))


def about(fitted: LayerFit) -> str:
    """Return what a fit is of."""
    series = " + ".join((fitted.layer, *fitted.shims))
    values = ", ".join(f"{key}={value}" for key, value in {**fitted.settings, **fitted.choices}.items())
    return f"{series} {fitted.place} {fitted.wait}{f' ({values})' if values else ''}"
