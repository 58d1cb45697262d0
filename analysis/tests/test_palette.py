# SPDX-License-Identifier: BSD-3-Clause
"""The palette keeps its promises: contrast on both pages, difference for all eyes, identities that stay."""

from __future__ import annotations

from itertools import combinations

import pytest

from cadge_analysis.draw import palette

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
@pytest.mark.parametrize(("vision", "least"), [("normal", 40), ("protan", 12), ("deutan", 12), ("tritan", 12)])
def test_colours_stay_apart(colours: tuple[str, ...], page: str, vision: str, least: float) -> None:
    assert page
    seen = [lab(colour, vision) for colour in colours]
    nearest = min(sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5 for a, b in combinations(seen, 2))
    assert nearest >= least


def test_neutrals_cannot_be_mistaken_for_series() -> None:
    assert not set(palette.NEUTRALS) & set(palette.LIGHT)
    assert set(palette.NEUTRALS.values()) == set(palette.NEUTRALS_DARK)
    assert len(set(palette.LIGHT)) == len(set(palette.DARK)) == len(set(palette.SHAPES)) == len(palette.LIGHT)


def test_a_layer_looks_the_same_whoever_is_beside_it() -> None:
    names = ["mpi-p2p", "native-ofi", "native-ucx", "rdma-ofi", "rdma-ucx", "sockets-tcp", "sockets-udp"]
    everyone = palette.identities([*names, "sockets-unix"])
    assert len({look.slot for look in everyone.values()}) == 8
    for name in names:
        assert palette.identities([name])[name] == everyone[name]


def test_more_series_than_colours_are_told_apart_by_dashes() -> None:
    looks = palette.identities(f"style-{number}" for number in range(20))
    assert len({(look.slot, look.dashed) for look in looks.values()}) == 20
