# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of campaigns of a self-test: how far they lie apart, and how often that is called a change."""

from __future__ import annotations

import pytest
import synthetic
from scaled import scaled

from cadge_analysis.selftest.campaign_pairs import CampaignPairs, campaign_pairs
from cadge_analysis.stats.load import read
from cadge_analysis.versus.sides import Side

LAYERS = ("sockets-tcp", "native-ucx", "native-ofi", "rdma-ucx")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, ...]:
    """Four campaigns that differ by chance alone."""
    folder = tmp_path_factory.mktemp("pairs")
    found = []
    for seed in range(4):
        options = synthetic.Options(
            layers=LAYERS,
            sizes=(8, 4096),
            places=("within",),
            waits=("poll",),
            launches=9,
            samples=200,
            floors=False,
            troubles=False,
            seed=seed,
        )
        campaign = synthetic.make(folder / str(seed), options)
        found.append(Side(campaign.campaign_id, read(campaign)))
    return tuple(found)


def known(sides: tuple[Side, ...]) -> CampaignPairs:
    found = campaign_pairs(sides)
    assert found is not None
    return found


def test_campaigns_that_do_not_drift(sides: tuple[Side, ...]) -> None:
    found = known(sides)
    assert (found.pairs, found.cells, found.called) == (6, 6 * 4 * 2 * 2, 0)
    assert [(one.place, one.wait, one.form) for one in found.between] == [
        ("within", "poll", "exchange"),
        ("within", "poll", "flow"),
    ]
    assert all(one.common < 0.02 and one.spread < 0.02 for one in found.between)
    assert "0 of 96 points called changed" in found.says


def test_campaigns_that_drift_as_a_whole_and_series_by_series(sides: tuple[Side, ...]) -> None:
    """Launches alone call nearly everything changed; with what the other pairs show hardly anything is."""
    all_of_it = tuple(scaled(one, {"": times}) for one, times in zip(sides, (1.0, 1.1, 0.95, 1.2), strict=True))
    found = known(all_of_it)
    assert found.by_launches > found.cells / 2
    assert found.called == 0
    # of the logarithms 0, 0.095, -0.051 and 0.182 the standard deviation is 0.103
    assert all(one.common == pytest.approx(0.103, rel=0.25) for one in found.between)
    assert all(one.spread < 0.02 and one.freedom < 4 for one in found.between)

    ways = ((1.1, 0.9, 1.0, 1.05), (0.95, 1.1, 1.05, 0.9), (1.0, 0.97, 0.9, 1.12), (0.9, 1.0, 1.1, 1.0))
    apart = tuple(scaled(one, dict(zip(LAYERS, times, strict=True))) for one, times in zip(sides, ways, strict=True))
    assert all(0.03 < one.spread < 0.2 for one in known(apart).between)


def test_few_campaigns_say_nothing(sides: tuple[Side, ...]) -> None:
    assert campaign_pairs(sides[:2]) is None
    assert campaign_pairs(()) is None
