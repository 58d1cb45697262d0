# SPDX-License-Identifier: BSD-3-Clause
"""The published side of a study (`published.yml`, `cadge.study/1`): figures as data, each with source and tag."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import yaml
from pydantic import Field, PositiveInt, model_validator

from cadge_analysis import messages
from cadge_analysis.errors import BadInputError
from cadge_results import ResultsError
from cadge_results.formats.base import Document, Frozen, Place
from cadge_results.plugins.catalogue import read_yaml

say = partial(messages.say, "study")

FILE = "published.yml"
Tag = Literal["seed", "found", "derived"]
TAGS: dict[Tag, str] = {
    "seed": say("published.stated_notes_paper_project"),
    "found": say("published.read_public_copy_public"),
    "derived": say("published.computed_us_from_figures"),
}


class PublishedFigure(Frozen):
    """One published number. `unit` is as published; a share is a part of one."""

    name: str = Field(min_length=1)
    value: float
    unit: Literal["us", "Mb/s", "MB/s", "1/s", "share", "times"]
    tag: Tag
    source: str = Field(min_length=1)


class PublishedPoint(Frozen):
    """A published measurement and the workload of ours that stands beside it. Names are those of figures."""

    title: str = Field(min_length=1)
    note: str = ""
    pattern: str
    what: str = Field(min_length=1)
    """The pattern in a sentence."""
    place: Place
    bytes: int = Field(ge=0)
    """The value of the pattern's axis; whatever else it has is at its default, or the highest where it prefers that."""
    is_rate: bool = False
    """Whether more is better: a rate has no time above its floor."""
    total: str
    floor: str | None = None
    above: str | None = None
    ratio: str | None = None
    """The published ratio to the floor; total \u00f7 floor where it is not given."""
    no_floor: str = ""
    """Why no floor, or nothing above it, was published."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the figures that it uses."""
        return tuple(name for name in (self.total, self.floor, self.above, self.ratio) if name is not None)


class BillOf(Frozen):
    """Whose bill is drawn: a round trip of `pattern` with `bytes` both ways, and the published one above it."""

    pattern: str
    bytes: int = Field(ge=0)
    title: str
    total: str
    floor: str
    above: str
    engine_reading: dict[str, str] = Field(default_factory=dict)
    """Name of the reading in the engine's own benchmark, by place; {substrate} stands for the layer's."""


class SettingOf(Frozen):
    """The setting that switches optimisations, and its values in words."""

    setting: str
    default: str
    values: dict[str, str]


class MeasureOf(Frozen):
    """A workload of the matrix: a pattern at some values of its axis."""

    title: str = Field(min_length=1)
    pattern: str
    bytes: tuple[PositiveInt, ...] = Field(min_length=1)


class MatrixOf(Frozen):
    """Styles on substrates: each layer is called `style-substrate`."""

    base: str
    """The style that each of them is divided by, on the same substrate."""
    styles: dict[str, str]
    """In their order, each with its name for people."""
    substrates: dict[str, str]
    measures: tuple[MeasureOf, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _base_is_a_style(self) -> Self:
        if self.base not in self.styles:
            raise ValueError(say("published.base_none_styles", base=self.base))
        return self


class PropertyOf(Frozen):
    """One row of what systems can do: ours as its layers were tested, the published ones in a word or two."""

    name: str = Field(min_length=1)
    trait: str = ""
    """A trait that the layers state, or, instead, a capability."""
    cap: str = ""
    published: dict[str, str] = Field(default_factory=dict)
    """By style; what was not seen is not here."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.trait) == bool(self.cap):
            raise ValueError(say("published.trait_or_cap", name=self.name))
        return self


class SemanticsOf(Frozen):
    """What the systems of the paper could do, beside ours. `systems` are their names, by our style."""

    systems: dict[str, str]
    properties: tuple[PropertyOf, ...] = Field(min_length=1)


class SeriesOf(Frozen):
    """A layer as it was opened: its settings by name."""

    layer: str
    settings: dict[str, str] = Field(default_factory=dict)


class PairOf(Frozen):
    """Two series of which one has a feature and the other does not."""

    on: SeriesOf
    off: SeriesOf


class ParameterOf(Frozen):
    """A parameter of a workload that switches a feature, with its two values."""

    name: str
    on: int | str
    off: int | str


class ReasonOf(Frozen):
    """Why a feature of some layers has no price. `layers` are patterns with `*`."""

    layers: tuple[str, ...] = Field(min_length=1)
    why: str = Field(min_length=1)


class FeatureOf(Frozen):
    """A feature: what switches it, and why it cannot be switched where it cannot.

    It is switched by a value of the ablation's setting, between pairs of series, or by a parameter of the workload.
    """

    name: str = Field(min_length=1)
    note: str = ""
    switched: str = ""
    pairs: tuple[PairOf, ...] = ()
    parameter: ParameterOf | None = None
    reasons: tuple[ReasonOf, ...] = ()
    """Of several that fit a layer the first one counts."""


class FreeOf(Frozen):
    """What counts as no cost: an interval of the ratio, or of the difference, that ends at this or below."""

    times: float = Field(gt=1)
    ns: int = Field(ge=0)


class ContrastOf(Frozen):
    """One value of a parameter (`on`) beside another (`off`): what it costs, size by size."""

    title: str = Field(min_length=1)
    note: str = ""
    pattern: str = ""
    """The only one that counts; every pattern that has the parameter where it is not given."""
    parameter: ParameterOf
    given: dict[str, int | str] = Field(default_factory=dict)
    """Values of other parameters: only workloads that have them count."""
    across: str = ""
    """The parameter whose values are the columns; the pattern's axis where it is not given."""
    ratio: str = Field(min_length=1)
    """What a number is: on \u00f7 off, in words."""
    free: FreeOf
    said: dict[Literal["free", "costs", "open"], str]
    """What is said of a layer: nothing it costs, it costs, or neither can be told."""
    figures: tuple[str, ...] = ()
    """Names of the published figures that stand with it."""

    @model_validator(mode="after")
    def _check_said(self) -> Self:
        if len(self.said) < 3:
            raise ValueError(say("published.said_give_free_costs"))
        return self


class RungOf(Frozen):
    """One way of doing the same: the points with these values, everything else as it usually is."""

    name: str = Field(min_length=1)
    """{value} stands for that of `each`."""
    when: dict[str, int | str] = Field(default_factory=dict)
    absent: str = ""
    """Why no layer has it here: a row says so, and no points are its."""
    wait: Literal["", "poll", "block"] = ""
    """The only wait mode in which it is a rung; both where it is not given."""
    each: str = ""
    """A parameter of which every value that was measured has a row of its own."""
    figure: str = ""
    """Name of the published figure, of the same kind on each rung."""


class LadderOf(Frozen):
    """Ways of doing the same, one after the other: what a layer reaches on each, and what it takes for that."""

    title: str = Field(min_length=1)
    note: str = ""
    pattern: str
    across: str
    """The parameter whose values are the columns."""
    rungs: tuple[RungOf, ...] = Field(min_length=2)
    """The first is what the others are divided by."""
    cores: PositiveInt
    """Published ratios stand beside ours where every host has so many processors at least."""


class RangeOf(Frozen):
    """A range that was published for several systems, and the workload of ours whose spread stands beside it."""

    title: str = Field(min_length=1)
    note: str = ""
    low: str
    high: str
    pattern: str
    what: str = Field(min_length=1)
    bytes: int = Field(ge=0)
    layers: tuple[str, ...] = Field(min_length=1)
    """Which of ours, as patterns with `*`."""


class ModelledOf(Frozen):
    """A system whose parameters were published: names of figures in us; what was not seen is not given."""

    label: str = Field(min_length=1)
    send: str | None = None
    receive: str | None = None
    latency: str | None = None
    gap: str | None = None
    one_way: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the figures that it uses."""
        every = (self.send, self.receive, self.latency, self.gap, self.one_way)
        return tuple(name for name in every if name is not None)


class ModelsOf(Frozen):
    """Published parameters of a model of messages, above those fitted to ours."""

    title: str = Field(min_length=1)
    note: str = ""
    published: tuple[ModelledOf, ...] = ()


class TopologyOf(Frozen):
    """A part of a grid's rows: a pattern, with values of its parameters."""

    name: str = Field(min_length=1)
    pattern: str
    given: dict[str, int | str] = Field(default_factory=dict)


class ColumnOf(Frozen):
    """A column of a grid: the main quantity of one workload, or the bytes a second that its operations carried."""

    name: str = Field(min_length=1)
    given: dict[str, int | str]
    carries: str = ""
    """The parameter whose bytes an operation carries: then the cell is a rate in MB/s, else a time in µs."""


class KnownOf(Frozen):
    """A row of what was published of a grid, in its own words. `cells` are names of figures, by that of the column."""

    name: str = Field(min_length=1)
    cells: dict[str, str]
    said: dict[str, str] = Field(default_factory=dict)
    """What stands before a figure, by column: at least, 0 B +."""


class GridOf(Frozen):
    """A published table whose rows are combinations: topologies times the words of further parameters."""

    title: str = Field(min_length=1)
    note: str = ""
    topologies: tuple[TopologyOf, ...] = Field(min_length=1)
    by: dict[str, dict[str, str]]
    """Names of parameters, and for each of their words what it is called."""
    columns: tuple[ColumnOf, ...] = Field(min_length=1)
    known: tuple[KnownOf, ...] = ()

    @model_validator(mode="after")
    def _columns_known(self) -> Self:
        names = {column.name for column in self.columns}
        for row in self.known:
            if unknown := sorted({*row.cells, *row.said} - names):
                raise ValueError(say("published.none_called", where=row.name, kind="column", name=unknown[0]))
        return self


class ShareOf(Frozen):
    """What calls keep of the rate of another pattern over the same layer, size by size."""

    title: str = Field(min_length=1)
    note: str = ""
    pattern: str
    given: dict[str, int | str] = Field(default_factory=dict)
    prefer: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Words of a parameter: the first of them that a layer can do is taken."""
    carries: str
    """The parameter whose bytes an operation carries."""
    of: str
    """The pattern whose main quantity, a rate in MB/s, is what the share is of; its axis is the size."""
    of_given: dict[str, int | str] = Field(default_factory=dict)
    figures: dict[int, str] = Field(json_schema_extra={"propertyNames": {"type": "string", "pattern": "^[0-9]+$"}})
    """Name of the published figure, by size: the columns."""


class HypothesisOf(Frozen):
    """A claim of the paper, and the ratios of ours that speak for or against it.

    Ratios are those of a contrast, or the shares at a size. One speaks for it where its whole interval lies at `most`
    or below, or above `above`; against it where the whole interval lies on the other side.
    """

    claim: str = Field(min_length=1)
    said: str = Field(min_length=1)
    """What was published of it."""
    contrast: str = ""
    """The title of a contrast; the shares where it is not given."""
    size: int | None = None
    given: dict[str, int | str] = Field(default_factory=dict)
    most: float | None = None
    above: float | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.most is None) == (self.above is None):
            raise ValueError(say("published.give_either_most_above", claim=self.claim))
        if bool(self.contrast) == (self.size is not None):
            raise ValueError(say("published.give_either_contrast_shares", claim=self.claim))
        return self


class Publication(Document):
    """All of a paper that a study shows. What a study does not have has no section on its page."""

    NAME: ClassVar[str] = "cadge.study"

    title: str = Field(min_length=1)
    year: int
    system: str = Field(min_length=1)
    layers: str = Field(min_length=1)
    """Which of our layers stand beside it, as a pattern with `*`."""
    facts: dict[str, str]
    figures: dict[str, PublishedFigure]
    comparisons: tuple[PublishedPoint, ...] = ()
    matrix: MatrixOf | None = None
    ranges: tuple[RangeOf, ...] = ()
    semantics: SemanticsOf | None = None
    bill: BillOf | None = None
    ablation: SettingOf | None = None
    features: tuple[FeatureOf, ...] = ()
    grid: GridOf | None = None
    shares: ShareOf | None = None
    contrasts: tuple[ContrastOf, ...] = ()
    hypotheses: tuple[HypothesisOf, ...] = ()
    ladders: tuple[LadderOf, ...] = ()
    models: tuple[ModelsOf, ...] = ()
    own: dict[str, Any] | None = None
    """What the study's own code reads (cadge_analysis.study.plugin)."""

    @model_validator(mode="after")
    def _names_known(self) -> Self:
        used = {name for one in self.comparisons for name in one.names}
        used |= {name for one in self.ranges for name in (one.low, one.high)}
        if self.bill is not None:
            used |= {self.bill.total, self.bill.floor, self.bill.above}
        used |= {name for one in self.contrasts for name in one.figures}
        used |= {name for row in (self.grid.known if self.grid else ()) for name in row.cells.values()}
        used |= set(self.shares.figures.values() if self.shares else ())
        used |= {name for one in self.models for system in one.published for name in system.names}
        used |= {rung.figure for one in self.ladders for rung in one.rungs if rung.figure}
        unknown = sorted(used - set(self.figures))
        if unknown:
            raise ValueError(say("published.no_figure_called", unknown=list(unknown)))
        values = self.ablation.values if self.ablation else {}
        for one in self.features:
            if one.switched and one.switched not in values:
                raise ValueError(say("published.no_value_ablations_setting", one=one.name, switched=one.switched))
        titles = {one.title for one in self.contrasts}
        for claimed in self.hypotheses:
            if claimed.contrast and claimed.contrast not in titles:
                raise ValueError(
                    say("published.none_called", where=claimed.claim, kind="contrast", name=claimed.contrast)
                )
            if claimed.size is not None and claimed.size not in (self.shares.figures if self.shares else {}):
                raise ValueError(say("published.no_share_bytes_published", claim=claimed.claim, size=claimed.size))
        return self


def read(folder: Path) -> Publication:
    """Read a study's figures. Raises BadInputError, which says what is wrong with them."""
    path = folder / FILE
    try:
        return Publication.from_object(read_yaml(path.read_text(encoding="utf-8")), source=str(path))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError, ResultsError) as error:
        raise BadInputError(f"{path}: {error}") from error
