# SPDX-License-Identifier: BSD-3-Clause
"""What each part of `cadge selftest` measures: ordinary campaigns of sweeps that are called selftest-NAME."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from cadge_cli.commands.run import measure
from cadge_cli.options import MeasureOptions
from cadge_cli.output import Output
from cadge_cli.words import say
from cadge_harness.errors import EXIT_BAD_ANSWER, EXIT_OK, HarnessError, UnfitError
from cadge_harness.paths import find_checkout
from cadge_harness.run.disturb import disturbing
from cadge_harness.run.request import read_request
from cadge_results import Campaign, Store
from cadge_results.plugins.catalogue import read_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:  # numbers take time to import, and --help does without
    from cadge_analysis.selftest.findings import PartFinding
    from cadge_results.formats.selftest import BetweenCampaigns

LAUNCHES = 30
"""Of each side of a series of delays."""
DELAY_S = 14 * 60
"""For all series of delays together."""
ALIKE_CAMPAIGNS = 5
ALIKE_SWEEP = "selftest-aa"
QUIET_SWEEP = "selftest-quiet"

STEERING: Mapping[str, str] = {
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "lo",
    "UCX_RNDV_THRESH": "256",
    "UCX_ZCOPY_THRESH": "1",
    "UCX_RNDV_SCHEME": "am",
    "UCX_SHM_DEVICES": "sysv",
    "FI_PROVIDER": "tcp",
    "FI_SHM_DISABLE_CMA": "1",
    "FI_SHM_TX_SIZE": "2",
    "FI_TCP_NODELAY": "0",
    "FI_OFI_RXM_BUFFER_SIZE": "256",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_pml": "cm",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_btl_vader_eager_limit": "512",
    "OMPI_MCA_btl_sm_eager_limit": "512",
    "PMIX_MCA_gds": "hash",
}
"""Variables that change a path, how data are copied or a threshold, of every library here."""
FILES: Mapping[str, str] = {
    "ucx.conf": "UCX_TLS=tcp,self\nUCX_RNDV_THRESH=256\n",
    ".openmpi/mca-params.conf": "btl = tcp,self\nbtl_vader_eager_limit = 512\n",
    ".pmix/mca-params.conf": "gds = hash\n",
}
"""Files that the same libraries read in a home, and in the working folder."""
OF_FOLDERS = ("UCX_CONFIG_DIR", "OMPI_MCA_mca_param_files", "HOME")
"""Variables that name such a file or its folder."""
STEERS_NO_LIBRARY = "env.LD_PRELOAD"


class StoppedError(HarnessError):
    """The user ended a campaign of the self-test."""

    def __init__(self, code: int) -> None:
        super().__init__(say("selftest.stopped"))
        self.exit_code = code


class NotMadeError(Exception):
    """A part cannot be made here, and why."""


@dataclass
class SelftestRun:
    """What all parts share. `folder`: the self-test's own files; its campaigns lie in `campaigns`."""

    output: Output
    how: MeasureOptions
    folder: Path
    campaigns: Path
    series: int
    until_s: float
    """By time.monotonic: later no campaign is begun."""
    made: dict[str, list[Campaign]] = field(default_factory=dict)
    """Campaigns by the part that they were made for."""
    between: tuple[BetweenCampaigns, ...] = ()
    """How far campaigns of this machine lie apart, once a part shows it."""

    def campaign(self, part: str, sweep: str, *, seed: int | None = None) -> Campaign:
        """Carry out a sweep, or a sweep's file, as `cadge run` does. Raises NotMadeError where no time is left."""
        if time.monotonic() > self.until_s:
            raise NotMadeError(say("selftest.no_time"))
        done = measure(read_request(sweep, seed=seed), self.output, self.how)
        self.made.setdefault(part, []).append(done.campaign)
        if done.code not in {EXIT_OK, EXIT_BAD_ANSWER}:
            raise StoppedError(done.code)
        return done.campaign

    def written(self, name: str, changes: Mapping[str, object]) -> str:
        """Write a sweep of ours with other layers or numbers into the self-test's folder; return the file's name."""
        source = read_yaml((find_checkout().sweeps / f"{name}.yml").read_text(encoding="utf-8"))
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.yml"
        path.write_text(yaml.safe_dump({**source, **changes}, sort_keys=False, width=120), encoding="utf-8")
        return str(path)


def delay(making: SelftestRun) -> PartFinding:
    """Find out what to plant and where, plant it, and look whether it is found."""
    from cadge_analysis.selftest.findings import of_delays, plants, series_within

    first = making.campaign("delay", "selftest-find")
    found = plants(first)
    if not found:
        raise NotMadeError(say("selftest.nothing_to_plant"))
    layers = [
        {"layer": one.layer, "shims": "delay", "settings": settings} for one in found for settings in one.settings
    ]
    series = series_within(first, DELAY_S, len(layers), making.series)
    if series < making.series:
        making.output.say(say("selftest.series_fit", series=series, launches=LAUNCHES, minutes=DELAY_S // 60))
    sweep = making.written("selftest-delay", {"layers": layers, "launches": LAUNCHES * series})
    return of_delays(making.campaign("delay", sweep))


def stall(making: SelftestRun) -> PartFinding:
    """Stall one end of two, and look who notices."""
    from cadge_analysis.selftest.findings import of_stall

    return of_stall(making.campaign("stall", "selftest-stall"))


def quiet(making: SelftestRun) -> PartFinding:
    """Measure in surroundings without what steers libraries and in surroundings full of it, by the real command."""
    from cadge_analysis.selftest.findings import of_quiet

    with tempfile.TemporaryDirectory(prefix="cadge-selftest-") as folder:
        home = Path(folder)
        for name, text in FILES.items():
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_text(text, encoding="utf-8")
        told = {
            **STEERING,
            "UCX_CONFIG_DIR": folder,
            "OMPI_MCA_mca_param_files": str(home / ".openmpi/mca-params.conf"),
            "HOME": folder,
        }
        clean = making.campaign("quiet", QUIET_SWEEP)
        steered = _by_the_command(making, told, home)
        refused = _refused(making, home)
    return of_quiet(clean, steered, [*STEERING, *OF_FOLDERS[:2], *FILES], refused)


def _by_the_command(making: SelftestRun, told: Mapping[str, str], folder: Path) -> Campaign:
    where = ["--testbed", making.how.testbed_name, "--results", str(making.campaigns), "--no-report", "--json"]
    where += ["--inventory", str(making.how.inventory.absolute())] if making.how.inventory else []
    where += [] if making.how.queue else ["--no-queue"]
    done = _cadge(["run", "--sweep", QUIET_SWEEP, *where], told, folder)
    if done.returncode not in {EXIT_OK, EXIT_BAD_ANSWER}:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise UnfitError(say("selftest.steered_ended", code=done.returncode, said=said[-1]))
    found = Store(making.campaigns).open(json.loads(done.stdout)["data"]["campaign_id"])
    making.made["quiet"].append(found)
    return found


def _refused(making: SelftestRun, folder: Path) -> str:
    """Return what `cadge plan` says of a variable that steers no library; empty where it does not refuse it."""
    layer = read_yaml((find_checkout().sweeps / f"{QUIET_SWEEP}.yml").read_text(encoding="utf-8"))["layers"][0]
    layers = [{"layer": layer, "settings": {STEERS_NO_LIBRARY: "/nowhere.so"}}]
    sweep = making.written(QUIET_SWEEP, {"layers": layers})
    done = _cadge(["plan", "--sweep", sweep, "--testbed", "local"], {}, folder)
    return done.stderr.strip() if done.returncode not in {EXIT_OK, EXIT_BAD_ANSWER} else ""


def _cadge(argv: Sequence[str], told: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cadge_cli.cli", *argv]
    environment = {**os.environ, "CADGE_ROOT": str(find_checkout().root), **told}
    try:
        return subprocess.run(
            command,
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise UnfitError(say("selftest.not_ready", command=shlex.join(command))) from error


def alike(making: SelftestRun) -> PartFinding:
    """Measure layers against themselves in several campaigns, one of them beside a load."""
    from cadge_analysis.selftest.findings import of_alike

    if not (find_checkout().sweeps / f"{ALIKE_SWEEP}.yml").is_file():
        raise NotMadeError(say("selftest.no_sweep", sweep=ALIKE_SWEEP))
    seed = read_request(ALIKE_SWEEP).sweep.seed
    for number in range(ALIKE_CAMPAIGNS):
        with disturbing() if number == 0 else nullcontext():  # first, so that it is there if time runs out
            making.campaign("alike", ALIKE_SWEEP, seed=seed + number)
    return of_alike(making.made["alike"])


def coverage(making: SelftestRun) -> PartFinding:
    """Draw campaigns from the rounds of the delays' one, and look how many intervals hold the truth."""
    from cadge_analysis.selftest.findings import of_coverage

    if len(made := making.made.get("delay", [])) < 2:
        raise NotMadeError(say("selftest.no_delay"))
    return of_coverage(made[-1])


PARTS: Mapping[str, Callable[[SelftestRun], PartFinding]] = {
    "delay": delay,
    "stall": stall,
    "quiet": quiet,
    "coverage": coverage,
    "alike": alike,
}
ABOUT = {
    "delay": "delays that were planted are found, and intervals hold what was really planted",
    "stall": "a stall shows in calls that come at a rate of their own, and in no closed loop",
    "quiet": "what steers a library is refused, unsound or shown",
    "coverage": "intervals hold the truth as often as stated, under the drift that was measured",
    "alike": "a layer beside itself is called different as often as stated, and no more often",
}
