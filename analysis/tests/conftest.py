# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic campaigns and their reports, made once a test session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside this file: synthetic, chromium

import chromium
import synthetic

from cadge_analysis import report
from cadge_analysis.stats import load
from cadge_analysis.stats.load import Cell, Dataset
from cadge_results import Campaign, CampaignMeta, Plan

DATASETS_MOST = 4
"""That are kept in memory."""

settings.register_profile("untimed", deadline=None)  # machines are shared: how long an example takes says nothing
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder as spare: none waits for anybody, and several of a file share a campaign."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("spare")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what is read out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """What tests store need not outlast the machine: each fsync takes milliseconds, and a campaign has hundreds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _read_once() -> Iterator[None]:
    """Read a campaign once as long as no file of it changes: exports, tables and pages each read it anew."""
    real, known = load._read, dict[object, Dataset]()

    def read(
        campaign: Campaign,
        plan: Plan,
        meta: CampaignMeta,
        rounds: int | None,
        *,
        afresh: bool,
        kept: Callable[[Cell], Cell],
    ) -> Dataset:
        stats = ((path, path.lstat()) for path in sorted(campaign.path.rglob("*")))
        files = tuple((path, stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in stats)
        key = (files, plan.plan_hash, meta.to_json(), rounds)
        if afresh or key not in known:
            found = real(campaign, plan, meta, rounds, afresh=afresh, kept=load.whole)
            while len(known) >= DATASETS_MOST:
                del known[next(iter(known))]
            known[key] = found
        data = known[key]
        if kept is load.whole:
            return data
        return replace(data, cells=tuple(map(kept, data.cells)), twins=tuple(map(kept, data.twins)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "_read", read)
        yield


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Eight layers, both places, polling and blocking, with refused, failed and unsound attempts."""
    options = synthetic.Options(sizes=(8, 4096, 65536, 1048576), samples=2000)
    return synthetic.make(tmp_path_factory.mktemp("campaigns"), options)


@pytest.fixture(scope="session")
def report_path(campaign: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of `campaign`."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.build(campaign.path, path)
    return path


@pytest.fixture(scope="session")
def report_text(report_path: Path) -> str:
    """The report of `campaign` as text."""
    return report_path.read_text()


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    """A headless Chromium; tests that need it are skipped where there is none."""
    program = chromium.find()
    if program is None:
        pytest.skip("no Chromium on this machine")
    with chromium.Browser(program) as found:
        yield found
