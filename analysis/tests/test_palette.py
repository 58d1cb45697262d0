# SPDX-License-Identifier: BSD-3-Clause
"""The palette keeps its promises: contrast on both pages, difference for all eyes, identities that stay."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis.draw import palette
from cadge_analysis.stats.load import Series

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
PAGES = [(palette.LIGHT, palette.PAGE_LIGHT), (palette.DARK, palette.PAGE_DARK)]


def linear(colour: str) -> tuple[float, ...]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)


def contrast(one: str, other: str) -> float:
    weights = (0.2126, 0.7152, 0.0722)
    light = sorted(sum(w * c for w, c in zip(weights, linear(x), strict=True)) for x in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


def lab(colour: str, vision: str) -> tuple[float, float, float]:
    source = linear(colour)
    rgb = [min(1.0, max(0.0, sum(a * b for a, b in zip(row, source, strict=True)))) for row in VISION[vision]]
    x = (0.4124564 * rgb[0] + 0.3575761 * rgb[1] + 0.1804375 * rgb[2]) / 0.95047
    y = 0.2126729 * rgb[0] + 0.7151522 * rgb[1] + 0.0721750 * rgb[2]
    z = (0.0193339 * rgb[0] + 0.1191920 * rgb[1] + 0.9503041 * rgb[2]) / 1.08883
    a, b, c = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * b - 16, 500 * (a - b), 200 * (b - c)


@pytest.mark.parametrize(("colours", "page"), PAGES)
def test_every_series_colour_has_three_to_one_against_its_page(colours: tuple[str, ...], page: str) -> None:
    assert min(contrast(colour, page) for colour in colours) >= 3.0


def test_text_has_four_and_a_half_to_one() -> None:
    assert contrast(palette.INK, palette.PAGE_LIGHT) >= 4.5
    assert contrast(palette.MUTED, palette.PAGE_LIGHT) >= 4.5
    assert contrast(palette.NEUTRALS_DARK["ink"], palette.PAGE_DARK) >= 4.5
    assert contrast(palette.NEUTRALS_DARK["muted"], palette.PAGE_DARK) >= 4.5


@pytest.mark.parametrize(("colours", "page"), PAGES)
@pytest.mark.parametrize(("vision", "least"), [("normal", 39), ("protan", 12), ("deutan", 12), ("tritan", 12)])
def test_colours_stay_apart(colours: tuple[str, ...], page: str, vision: str, least: float) -> None:
    assert page
    seen = [lab(colour, vision) for colour in colours]
    families = {slot: slots[0] for slots in palette.LOOKS.substrates.values() for slot in slots}
    far = {
        (one, other): sum((p - q) ** 2 for p, q in zip(seen[one], seen[other], strict=True)) ** 0.5
        for one, other in combinations(range(len(seen)), 2)
    }
    within = {pair for pair in far if families[pair[0]] == families[pair[1]]}
    assert len(within) == 6, "three shades of either family"
    assert min(far[pair] for pair in far if pair not in within) >= least
    assert min(abs(seen[one][0] - seen[other][0]) for one, other in within) >= 11, "shades differ in lightness"


def test_neutrals_cannot_be_mistaken_for_series() -> None:
    assert not set(palette.NEUTRALS) & set(palette.LIGHT)
    assert set(palette.NEUTRALS.values()) == set(palette.NEUTRALS_DARK)
    assert len(set(palette.LIGHT)) == len(set(palette.DARK)) == len(palette.LIGHT)
    assert len(set(palette.SHAPES)) == len(palette.SHAPES)
    tokens = palette.variables()
    assert len(tokens) == 4 * len(palette.LIGHT) * len(palette.SHAPES) * len(palette.LOOKS.variants)
    assert not set(tokens) & {*palette.LIGHT, *palette.NEUTRALS}


PLANNED = {
    "sockets": ("tcp", "udp", "unix", "uring", "zmq"),
    "native": ("ucx", "ofi", "verbs"),
    **dict.fromkeys(("am", "fm", "bip", "pm"), ("ucx", "ofi")),
    "vmmc": ("ucx", "ofi", "mpi"),
    "rdma": ("ucx", "ofi", "verbs"),
    "mpi": ("p2p", "rma"),
    "peregrine": ("shm", "udp", "ip", "xdp"),
    "null": ("self",),
}
LAYERS = tuple(f"{style}-{substrate}" for style, found in PLANNED.items() for substrate in found)


def series(layer: str, *shims: str, **settings: str) -> Series:
    return Series("layer", layer, shims, tuple(sorted(settings.items())))


def look(layer: str, beside: Sequence[str] = ()) -> palette.Identity:
    return palette.identities([series(name) for name in (layer, *beside)])[series(layer)]


def test_no_two_planned_layers_look_alike() -> None:
    assert len(LAYERS) >= 27
    looks = {name: look(name) for name in LAYERS}
    assert len(set(looks.values())) == len(LAYERS)
    for name, alone in looks.items():
        assert look(name, LAYERS) == alone
        assert not alone.hollow
        assert not alone.dash


def test_a_layer_of_an_unknown_substrate_needs_no_line_in_a_list() -> None:
    stranger = look("am-libfoo", LAYERS)
    assert stranger == look("am-libfoo")
    assert stranger.marker == look("am-ucx").marker


def test_a_layer_has_the_hue_of_its_substrate_and_the_marker_of_its_style() -> None:
    used = {look(f"{style}-ucx").slot for style in ("native", "am", "fm", "bip", "pm", "vmmc", "rdma")}
    assert used == set(palette.LOOKS.substrates["ucx"]), "seven styles share out its shades"
    assert look("rdma-ofi").marker == look("rdma-ucx").marker == look("rdma-verbs").marker
    for styles in (PLANNED["sockets"], PLANNED["peregrine"], PLANNED["rdma"], PLANNED["mpi"]):
        assert len({palette.LOOKS.substrates[name] for name in styles}) == len(styles)


@given(st.lists(st.sampled_from(LAYERS), unique=True), st.sampled_from(LAYERS))
def test_adding_a_layer_changes_nobodys_look(there: list[str], added: str) -> None:
    before = palette.identities(map(series, there))
    after = palette.identities(map(series, [*there, added]))
    assert all(after[name] == found for name, found in before.items())


def test_shims_and_settings_are_told_apart_from_the_layer_and_from_each_other() -> None:
    layer = series("peregrine-shm")
    variants = [series("peregrine-shm", off=name) for name in ("a", "b", "c", "d", "e", "f", "g", "h")]
    found = palette.identities([layer, *variants, series("peregrine-shm", "delay")])
    assert len(set(found.values())) == len(found)
    assert found[layer] == look("peregrine-shm")
    for one, seen in found.items():
        assert (seen.slot, seen.marker) == (found[layer].slot, found[layer].marker)
        assert (one == layer) is (not seen.hollow and not seen.dash)
    assert palette.identities([variants[0]])[variants[0]].variant > 0


def test_unknown_names_are_told_apart_as_well() -> None:
    looks = palette.identities(series(f"style-{number}") for number in range(40))
    assert len(set(looks.values())) == 40
    assert look("style-x", LAYERS) not in {look(name, ["style-x"]) for name in LAYERS}
