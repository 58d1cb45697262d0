# SPDX-License-Identifier: BSD-3-Clause
"""What `plan` and `run` have in common: from the command line to a plan."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from cadge_harness.errors import UsageError
from cadge_harness.native.cells import choose, natives_of
from cadge_harness.native.interleave import NativesOfSweep
from cadge_harness.native.tools import TOOLS
from cadge_harness.paths import Checkout, find_checkout
from cadge_harness.plan.catalogue import Catalogue, read_catalogue
from cadge_harness.plan.describe import describe_layers
from cadge_harness.plan.learn import learned
from cadge_harness.plan.link import states_rate
from cadge_harness.plan.narrow import NOTHING_ASKED, Narrowing, narrowed
from cadge_harness.plan.patterns import read_patterns
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.replay import bounds, replaying
from cadge_harness.plan.site import site_of
from cadge_harness.plan.sweep import by_layers, find_sweep, read_sweep, wanted
from cadge_harness.plan.timemodel import idle_times, probed
from cadge_harness.plan.weblog import Replay, read_log
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed, TestbedKind
from cadge_results import DamagedError, Plan, Store, SweepFile, Workloads
from cadge_results.formats.sweep import ALL_LAYERS, POINT_MS_MIN, check_epochs, check_looks
from cadge_results.units import parse_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A sweep that somebody wants carried out, everything read and checked."""

    checkout: Checkout
    catalogue: Catalogue
    workloads: Workloads
    sweep_name: str
    given: str
    """The sweep as the user named it: what a command that is shown has to say."""
    sweep: SweepFile
    sweep_text: str
    only: tuple[str, ...]
    replay: Replay | None = None
    """What of it replays a trace replays this one."""
    all_sizes: bool = False
    """Whether its sizes were asked for, so that none is dropped for a budget."""
    add_rounds: bool = True
    """Whether there may be more launches than planned where the budget has time left: unless they were asked for."""
    notices: tuple[str, ...] = ()
    """What a reader should know of how the sweep differs from its file."""

    def testbed(self, name: str, inventory: Path | None, *, start: bool, own: int = 0) -> Testbed:
        """Return the testbed to measure it on, with as many emulated hosts as the sweep asks for (testbeds.resolve)."""
        sweep, exactly = self.sweep, "hosts" in self.sweep.model_fields_set
        return testbeds.resolve(
            name, inventory, start=start, hosts=sweep.hosts, exactly=exactly, own=own, anew=sweep.epochs > 1
        )

    def with_pairs(self, each: int) -> Request:
        """Return the request over fewer pairs of hosts: each host with so many others."""
        return replace(self, sweep=self.sweep.model_copy(update={"pairs": each}))

    def natives(self, testbed: Testbed) -> NativesOfSweep | None:
        """Return the native tools that the sweep wants beside its points; they run on this machine's hosts alone."""
        if not self.sweep.natives or testbed.kind is TestbedKind.CLUSTER:
            return None
        natives = natives_of(info.file for info in self.catalogue.layers if info.absent is None)
        patterns = {item.workload.pattern for item in wanted(self.sweep, self.workloads)}
        selection = choose(
            TOOLS,
            natives,
            self.workloads.patterns,
            layers=self.only,
            named=(),
            only=patterns,
            places=("within", "between"),
            sizes=self.sweep.natives,
            may_be_empty=True,
        )
        return NativesOfSweep(selection, self.workloads.patterns)

    def plan(self, testbed: Testbed, results: Path | None = None) -> Plan:
        """Plan it for a testbed that may have a past in `results`. Raises UsageError, NothingSelectedError."""
        natives = self.natives(testbed)
        damaged: list[DamagedError] = []
        times = learned(Store(results or self.checkout.campaigns), testbed, self.sweep_name, damaged)
        if times is None and testbed.kind is not TestbedKind.CLUSTER:  # whose nodes are not this machine
            times = probed(self.checkout.driver, idle_times(testbed.kind))
        plan = make_plan(
            self.sweep,
            self._described(testbed),
            self.workloads,
            site_of(testbed, times),
            only=self.only,
            trace=self.replay.facts if self.replay else None,
            all_sizes=self.all_sizes,
            add_rounds=self.add_rounds,
            beside_ms=natives.round_ms if natives else None,
        )
        return plan.with_notices(
            [
                *self.notices,
                *(natives.notices(plan) if natives else ()),
                *(f"not planned with its times: {error} ({error.commands[0]})" for error in damaged),
            ]
        )

    def _described(self, testbed: Testbed) -> Catalogue:
        """Return the catalogue with what those layers say of themselves that a sweep may refuse for it.

        They are asked on this machine, with what the testbed states for its first host.
        """
        items = wanted(self.sweep, self.workloads)
        at_a_rate = any(states_rate(part.layers) for part in by_layers(self.sweep))
        may_be_forbidden = os.geteuid() != 0 and testbed.kind is not TestbedKind.CLUSTER
        if (
            not at_a_rate
            and not may_be_forbidden
            and not any(item.wait == "block" or self.workloads.patterns[item.workload.pattern].needs for item in items)
        ):
            return self.catalogue  # asking a layer takes its time
        names = _in_question(self.sweep, self.catalogue, self.only)
        return describe_layers(self.catalogue, self.checkout, names, testbed.hosts[0].stated_variables)


def read_request(
    sweep_name: str,
    *,
    only: tuple[str, ...] = (),
    seed: int | None = None,
    budget: str | None = None,
    looks: str | None = None,
    log: Path | None = None,
    asked: Narrowing = NOTHING_ASKED,
) -> Request:
    """Read everything that a plan needs of this machine. Raises UsageError, UnfitError."""
    if looks is not None and asked.launches is not None:
        raise UsageError("--looks says how many launches there are, so --launches cannot")
    checkout = find_checkout()
    path = find_sweep(sweep_name, checkout.sweeps)
    workloads = read_patterns(checkout)
    catalogue = read_catalogue(checkout)
    sweep, text = read_sweep(path, workloads, catalogue.likely)
    changes: dict[str, object] = {}
    if seed is not None:
        changes["seed"] = seed
    if budget is not None:
        changes["budget"] = _budget_ms(budget)
    if looks is not None:
        changes["looks"] = _looks(looks, sweep.epochs)
        changes["launches"] = _looks(looks)[0]
    only = _named(only, catalogue)
    if log is not None:
        sweep = replaying(sweep, workloads, sweep_name)
    sweep, notices = narrowed(sweep, workloads, asked, name=sweep_name, folder=checkout.sweeps)
    return Request(
        checkout=checkout,
        catalogue=catalogue,
        workloads=workloads,
        sweep_name=path.stem,
        given=sweep_name,
        sweep=sweep.model_copy(update=changes),
        sweep_text=text,
        only=only,
        replay=read_log(log, bounds(workloads)) if log is not None else None,
        all_sizes=bool(asked.sizes),
        add_rounds=asked.launches is None,
        notices=notices,
    )


def _named(only: tuple[str, ...], catalogue: Catalogue) -> tuple[str, ...]:
    """Return the layers asked for; `all` are those as well that the sweep leaves out. Raises UsageError."""
    if only == (ALL_LAYERS,):
        return catalogue.names()
    if ALL_LAYERS in only:
        raise UsageError(f"--layers: {ALL_LAYERS!r} takes no other names")
    for name in only:
        catalogue.get(name)
    return only


def _in_question(sweep: SweepFile, catalogue: Catalogue, only: tuple[str, ...]) -> set[str]:
    """Return the layers that a sweep may plan."""
    named: set[str] = set()
    for part in by_layers(sweep):
        named.update(
            *(catalogue.matching(entry.layer) for entry in part.layers) if part.layers else [catalogue.names()]
        )
    return named & set(only or catalogue.names())


def _looks(text: str, epochs: int = 1) -> tuple[int, ...]:
    parts = text.replace(",", " ").split()
    try:
        if not all(part.isdecimal() and len(part) <= 9 for part in parts):
            raise ValueError(f"{text!r} is no list of numbers of launches; write it like 9,12,18,30")
        found = check_looks([int(part) for part in parts])
        check_epochs(epochs, found)
    except ValueError as error:
        raise UsageError(f"--looks: {error}") from error
    return found


def _budget_ms(text: str) -> int:
    try:
        budget_ms = parse_ms(text)
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from error
    if budget_ms < POINT_MS_MIN:
        raise UsageError(f"--budget: {text} is less than one point takes")
    return budget_ms


def writable_by_others(path: Path) -> bool:
    """Say whether everybody may change a folder: then everybody may change what is run from it."""
    mode = path.stat().st_mode
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX and os.name == "posix"


def checkout_warnings(checkout: Checkout) -> list[str]:
    """Return what is dubious about a checkout, one sentence each."""
    found = [
        f"{folder} is writable by every user of this machine; anyone could change what cadge runs: chmod o-w {folder}"
        for folder in (checkout.root, checkout.build, checkout.build / "bin", checkout.modules)
        if folder.is_dir() and writable_by_others(folder)
    ]
    return found[:1]
