# SPDX-License-Identifier: BSD-3-Clause
"""`cadge run` and `cadge resume`."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol, Self

import click
from pydantic import JsonValue

from cadge_cli import again
from cadge_cli.ab_answer import ab_answer, check_sides, is_of_sides, sides_in
from cadge_cli.ablation import PREFIX, ablation_answer
from cadge_cli.closing import answer_of, closing_lines, report_of, troubles_of
from cadge_cli.commands.compare import FailOn, fail_on_of, fail_on_option
from cadge_cli.looks import due_words, go_on
from cadge_cli.options import (
    EXAMPLES,
    MeasureOptions,
    answers,
    asking_options,
    listed,
    looks_option,
    measuring_options,
    selftest_option,
    sweep_options,
    trace_option,
)
from cadge_cli.output import Output
from cadge_cli.progress import make_progress
from cadge_cli.words import say
from cadge_harness import __version__
from cadge_harness.errors import (
    EXIT_BAD_ANSWER,
    EXIT_OK,
    EXIT_STOPPED,
    EXIT_UNREACHABLE,
    NothingSelectedError,
    UnfitError,
    UsageError,
)
from cadge_harness.native.due import tools_of
from cadge_harness.native.interleave import InterleavingRunner, changed_versions
from cadge_harness.paths import Checkout, find_checkout, selftests_of
from cadge_harness.plan.narrow import Narrowing
from cadge_harness.plan.patterns import check_driver, check_plan
from cadge_harness.run.ansible_files import build_bytes
from cadge_harness.run.build_identity import build_digest
from cadge_harness.run.findings import busy, little_memory
from cadge_harness.run.machine_lock import MachineTurn, machine_lock
from cadge_harness.run.request import Request, checkout_warnings, read_request
from cadge_harness.run.room import check_room
from cadge_harness.run.runner import WORK, AnsibleRunner, tidy
from cadge_harness.run.runstate import RunState
from cadge_harness.run.session import CampaignEnd, Progress, Runner, Session, exit_code_of, hosts_left, on_same_hosts
from cadge_harness.run.stopping import Stopping
from cadge_harness.surroundings import MORE_MEMORY, shm_free_bytes
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.meeting import with_addresses
from cadge_harness.testbed.model import BY_AGENT
from cadge_harness.words import clock
from cadge_results import (
    Campaign,
    CampaignMeta,
    CampaignWriter,
    NativeFile,
    Plan,
    PlanSize,
    Store,
    TestbedFacts,
    ToolFacts,
    campaign_id,
)
from cadge_results.command import command, typed, typed_with
from cadge_results.formats.selftest import SelftestPin, newest_selftest, read_selftest, selftest_file
from cadge_results.store.looks import due_epoch, looks_state, next_step

PICTURE_MOST = 30
"""Lines of the picture at the end, and of what changed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRun:
    """A campaign carried out: the exit code, and what to say of it."""

    campaign: Campaign
    code: int
    data: dict[str, JsonValue]
    lines: list[str]


@click.command(
    epilog=EXAMPLES
    + "  cadge run\n  cadge run --sweep smoke --testbed local\n"
    + '  cadge run --layers "sockets-tcp native-ucx" --budget 2min\n'
    + "  cadge run --inventory lab.yml --sweep full-calls\n"
    + '  cadge run --patterns rpc --sizes "8B 4KiB" --places within --launches 15\n'
    + "  cadge run --sweep press-smoke --trace access.log\n"
    + "  cadge run --sweep ablate-peregrine --layers peregrine-udp --budget 2min"
)
@sweep_options
@asking_options
@looks_option
@trace_option
@measuring_options
@selftest_option
@answers
def run(
    sweep_name: str,
    layer_names: tuple[str, ...],
    seed: int | None,
    budget: str | None,
    asked: Narrowing,
    looks: str | None,
    log: Path | None,
    how: MeasureOptions,
    output: Output,
) -> int:
    """Run a sweep: plan, measure on the testbed, store, report. Ctrl-C stops it; `cadge resume` continues.

    A sweep ablate-NAME measures layers as they are and with each optimisation off. It ends with a table of each one's
    effect, which `cadge export --format ablation` prints again.
    """
    only = listed("--layers", layer_names, "sockets-tcp native-ucx")
    request = read_request(sweep_name, only=only, seed=seed, budget=budget, looks=looks, log=log, asked=asked)
    done = measure(request, output, how)
    if not request.sweep_name.startswith(PREFIX) or not done.campaign.launch_ids():
        return output.finish(done.code, done.data, done.lines)
    data, lines = ablation_answer(done.campaign)
    return output.finish(done.code, {**done.data, "ablation": data}, [*lines, "", *done.lines])


def _of_others(turn: MachineTurn) -> list[str]:
    """Say who else has measured on this machine since the turn began."""
    return [say("run.another_sweep", who=one.who) for one in turn.beside()]


@contextmanager
def _alone(
    without_waiting: str, output: Output, *, queue: bool, check: Callable[[], object]
) -> Iterator[tuple[Stopping, MachineTurn]]:
    """Wait until nobody else measures on this machine; a signal ends the waiting, and the command, in order.

    without_waiting: the command that measures beside them. `check` raises before anybody is waited for where the
    command would fail afterwards. Yields what became of signals, and the turn, which knows who measures beside it.
    """

    def on_wait(text: str) -> None:
        check()
        output.say(text)

    with (
        Stopping(output.say) as stopping,
        machine_lock(without_waiting, on_wait, queue=queue, should_stop=stopping.event.is_set) as turn,
    ):
        for problem in _of_others(turn):
            output.problem(problem)
        yield stopping, turn


class Beside(Protocol):
    """What a command has measured between the launches of its campaign."""

    def plan(self, plan: Plan) -> Plan:
        """Return the plan as it is to be carried out."""

    def native(self, plan: Plan) -> NativeFile:
        """Return what is to run between the launches of that plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCampaign:
    """A new campaign, before anything of it is stored."""

    plan: Plan
    native: NativeFile | None
    meta: CampaignMeta


def notices_of(plan: Plan) -> list[str]:
    """Return what a user is told of a plan before it is carried out."""
    return list(plan.notices)


def measure(
    request: Request,
    output: Output,
    how: MeasureOptions,
    beside: Beside | None = None,
    *,
    told: Callable[[Plan], list[str]] = notices_of,
) -> CampaignRun:
    """Carry out a sweep that was read and checked: plan, measure, store, report. told: what is said of the plan."""
    _ready(request.checkout, output)
    results = how.results or request.checkout.campaigns
    testbed_of = partial(request.testbed, how.testbed_name, how.inventory)

    def prepared(testbed: testbeds.Testbed) -> NewCampaign:
        from cadge_cli.power import with_predicted  # with numbers of other campaigns, which nothing before it needs

        check_driver(request.checkout)
        plan = request.plan(testbed, how.results)
        check_sides(request.sweep_name, plan)
        measured_beside = beside or request.natives(testbed)
        plan = with_predicted(measured_beside.plan(plan) if measured_beside else plan, results, testbed)
        carried_bytes = build_bytes(request.checkout.build, plan.layers)
        check_room(results, testbed, stored_bytes=plan.estimate.disk_bytes, carried_bytes=carried_bytes)
        native = measured_beside.native(plan) if measured_beside else None
        return NewCampaign(plan=plan, native=native, meta=_meta(request, plan, testbed, results, how))

    def check() -> None:
        prepared(with_addresses(testbed_of(start=False)))

    with _alone(typed_with("--no-queue"), output, queue=how.queue, check=check) as (stopping, turn):
        begun_s = time.monotonic()
        with _EpochTestbed(lambda: with_addresses(testbed_of(start=True, own=turn.number))) as testbed:
            _say_of(testbed.now, output)
            new = prepared(_seen(request, testbed.now, output, how))
            for notice in told(new.plan):
                output.say(notice)
            _say_if_short(testbed.now, new.plan, len(new.plan.launches), output)
            writer = CampaignWriter.create(
                results,
                meta=new.meta,
                plan=new.plan,
                sweep_text=request.sweep_text,
                trace=request.replay.trace if request.replay else None,
                native=new.native,
            )
            with writer:
                return _carry_out(writer, testbed, stopping, output, turn, how=how, begun_s=begun_s)


def _seen(request: Request, testbed: testbeds.Testbed, output: Output, how: MeasureOptions) -> testbeds.Testbed:
    """Return the testbed with what MPI needs of a cluster's hosts, where MPI layers are measured: as `cadge plan` does.

    Within an allocation of Slurm, srun reaches the hosts.
    """
    if testbed.kind is not testbeds.TestbedKind.CLUSTER or testbed.host_ssh[:1] == (BY_AGENT,):
        return testbed
    plan = request.plan(testbed, how.results)
    layers = {launch.subject.layer for launch in plan.launches if launch.launcher != "direct"}
    if not layers:
        return testbed
    from cadge_cli.hosts import OF_RANKS, look_at_hosts

    needed = plan.hosts_used([host.name for host in testbed.hosts])
    used = replace(testbed, hosts=tuple(host for host in testbed.hosts if host.name in needed))
    looked = look_at_hosts(used, request.checkout, output, programs=(), layers=layers)
    for finding in looked.findings:
        if finding.code in OF_RANKS:
            output.problem(finding.text)
    seen = {host.name: host for host in looked.testbed.hosts}
    return replace(testbed, hosts=tuple(seen.get(host.name, host) for host in testbed.hosts))


@click.command(epilog=EXAMPLES + "  cadge resume\n  cadge resume 20261121T013042Z-1f3a9c2e\n  cadge resume --failed")
@click.argument("campaign", default="last")
@click.option(
    "--failed",
    is_flag=True,
    help="Repeat launches with failed or unsound attempts. The earlier records are kept.",
)
@click.option(
    "--disturbed",
    is_flag=True,
    help="Repeat launches that other work on the machine disturbed. The earlier records are kept.",
)
@fail_on_option
@measuring_options
@answers
def resume(
    campaign: str, failed: bool, disturbed: bool, fail_on: tuple[str, ...], how: MeasureOptions, output: Output
) -> int:
    """Run the missing launches of a campaign by the same plan; with --failed or --disturbed, repeat such launches.

    A campaign of `cadge ab` ends with its comparison; only there --fail-on is allowed.
    """
    checkout = find_checkout()
    wanted = fail_on_of(fail_on)
    found = Store(how.results or checkout.campaigns).open(campaign, measured=False)
    found.check()
    if wanted and not is_of_sides(found):
        raise UsageError(say("run.fail_on_of_ab", campaign_id=found.campaign_id))
    asked: dict[again.Why, bool] = {"failed": failed, "disturbed": disturbed}
    reasons = [why for why, is_asked in asked.items() if is_asked]
    ended = not (found.path / WORK).exists()  # else it was killed before its nodes were as they had been
    complete = not found.missing_launch_ids() and not again.alone(found, in_vain=failed)
    if found.stored_plan.later or looks_state(
        found
    ):  # after the last launch more may follow, else it is marked as finished
        complete = complete and next_step(found) == "done" and found.meta.status == "finished"
    if complete and ended and not again.launch_ids(found, reasons):
        lines = [say("run.complete", campaign_id=found.campaign_id, none=again.none_of(reasons))]
        lines += again.advice(found, again.launch_ids(found, ["failed"]))
        data: dict[str, JsonValue] = {"campaign_id": found.campaign_id, "made": 0}
        return _answered(found, exit_code_of(found), data, lines, output, how, wanted)
    if (native := found.native()) is not None:
        tools_of(native)
        for problem in changed_versions(native):
            output.problem(problem)
    _ready(checkout, output)
    kind = found.meta.testbed.kind
    planned = found.meta.testbed.hosts
    same = how.testbed_name == "auto" and how.inventory is None and kind in testbeds.KINDS
    name = kind if same else how.testbed_name
    anew = found.plan.epochs > 1
    testbed_of = partial(testbeds.resolve, name, how.inventory, hosts=len(planned), anew=anew)

    def fitting(testbed: testbeds.Testbed) -> testbeds.Testbed:
        check_driver(checkout)
        check_plan(checkout, found.plan)
        here = on_same_hosts(found.meta, with_addresses(testbed))
        check_room(found.path, here, stored_bytes=0, carried_bytes=build_bytes(checkout.build, found.plan.layers))
        return here

    def check() -> None:
        fitting(testbed_of(start=False))

    at_once = command("resume", found.campaign_id, "--no-queue", *(f"--{why}" for why in reasons))
    with _alone(at_once, output, queue=how.queue, check=check) as (stopping, turn):
        begun_s = time.monotonic()
        with (
            _EpochTestbed(lambda: fitting(testbed_of(start=True, own=turn.number))) as testbed,
            CampaignWriter.resume(found.path) as writer,
        ):
            _say_of(testbed.now, output)
            _say_if_short(testbed.now, found.plan, len(found.missing_launch_ids()), output)
            carry_out = partial(_carry_out, writer, testbed, stopping, output, turn, begun_s=begun_s)
            done = _resumed(writer, carry_out, output, reasons, ended=ended, how=how)
    return _answered(done.campaign, done.code, done.data, done.lines, output, how, wanted)


def _answered(
    campaign: Campaign,
    code: int,
    data: dict[str, JsonValue],
    lines: list[str],
    output: Output,
    how: MeasureOptions,
    wanted: Sequence[FailOn],
) -> int:
    """End a command that has carried a campaign on: one of two sides with their comparison, as `cadge ab` does."""
    if code not in {EXIT_OK, EXIT_BAD_ANSWER} or (sides := sides_in(campaign)) is None:
        return output.finish(code, data, lines)
    compared = ab_answer(campaign, sides, output, how.results, wanted=wanted)
    return output.finish(
        compared.code or code, {**data, **compared.data}, [*compared.text.splitlines(), *compared.more]
    )


def _resumed(
    writer: CampaignWriter,
    carry_out: Callable[..., CampaignRun],
    output: Output,
    reasons: Collection[again.Why],
    *,
    ended: bool,
    how: MeasureOptions,
) -> CampaignRun:
    """Make what is missing; what there is reason to make again goes aside first.

    Nodes that are not clean yet still have the records of launches that ended: these come home first, and a launch of
    which a node has a record is not made again.
    """
    if reasons and not ended:
        first = carry_out(how=replace(how, report=False))
        if first.code not in {EXIT_OK, EXIT_BAD_ANSWER}:
            return first
    again.set_aside(writer, again.launch_ids(writer.campaign, reasons), output.say)
    if reasons or ended:
        again.set_aside(writer, again.alone(writer.campaign, in_vain="failed" in reasons), output.say)
    return carry_out(how=how)


def _say_of(testbed: testbeds.Testbed, output: Output) -> None:
    """Say what there is to know of a testbed, and warn where it is this machine and lacks time or memory."""
    for note in testbed.notes:
        output.say(note)
    if testbed.kind in testbeds.KINDS and (why := busy()):
        more = say("run.disturbing")
        output.problem(why if output.brief else f"{why}{more}")
    is_local = testbed.kind is testbeds.TestbedKind.LOCAL  # emulated hosts have their own memory
    if is_local and (why := little_memory(shm_free_bytes())):
        output.problem(f"{why}: {MORE_MEMORY}")


def _say_if_short(testbed: testbeds.Testbed, plan: Plan, launches: int, output: Output) -> None:
    """Warn where the hosts are taken away before so many launches are made."""
    needed_s = plan.estimate.wall_s * launches / max(1, len(plan.launches))
    if testbed.time_left_s is not None and needed_s > testbed.time_left_s:
        fit = int(launches * testbed.time_left_s / needed_s)
        output.problem(
            say("run.time_left", needed=clock(needed_s), left=clock(testbed.time_left_s), fit=fit, launches=launches)
        )


def _ready(checkout: Checkout, output: Output) -> None:
    """Refuse where nothing is built; warn of what is dubious."""
    if not checkout.driver.is_file():
        raise UnfitError(say("run.no_build", driver=checkout.driver), commands=(checkout.to_build,))
    for warning in checkout_warnings(checkout):
        output.problem(warning)


class _EpochTestbed:
    """The testbed of a campaign. It is made anew for each further epoch, and also when an epoch is resumed.

    So no two epochs share a making, and a test over epochs holds. An epoch that was resumed has two.
    """

    def __init__(self, make: Callable[[], testbeds.Testbed]) -> None:
        self._make = make
        self._epoch: int | None = None

    def __enter__(self) -> Self:
        self.now = self._make()
        return self

    def __exit__(self, *_: object) -> None:
        testbeds.release(self.now)

    def of_epoch(self, epoch: int | None) -> testbeds.Testbed:
        """Return the testbed as it is made for an epoch."""
        if self._epoch not in (None, epoch):
            testbeds.release(self.now)
            self.now = self._make()
        self._epoch = epoch
        return self.now


def _carry_out(
    writer: CampaignWriter,
    testbed: _EpochTestbed,
    stopping: Stopping,
    output: Output,
    turn: MachineTurn,
    *,
    how: MeasureOptions,
    begun_s: float,
) -> CampaignRun:
    """Make what is missing, and again what was disturbed as often as the sweep asks for it; then report."""
    campaign = writer.campaign
    runner: Runner = AnsibleRunner(find_checkout().build, tune=how.tune)
    if (native := campaign.native()) is not None:
        runner = InterleavingRunner(runner, writer, native)

    def run_what_is_missing(lost: Sequence[str] = (), problems: Sequence[str] = ()) -> CampaignEnd:
        here = _made_for(writer, testbed)
        state = RunState(campaign.plan, campaign.campaign_id, here.name, begun_s, due_words(campaign))
        state.already(campaign.launch_ids())
        progress = make_progress(state, output)
        session = Session(
            writer,
            here,
            progress,
            stopping.event,
            problems=[*problems],
            beside=partial(_of_others, turn),
            without=frozenset(lost),
        )
        return _run(session, runner, progress, state)

    ended = run_what_is_missing()
    lost: tuple[str, ...] = ()
    while {*ended.lost} - {*lost} and not stopping.event.is_set():
        lost = tuple(dict.fromkeys((*lost, *ended.lost)))
        left = hosts_left(campaign, lost)
        if len(left) < 2:
            break
        output.say(say("run.without", lost=", ".join(lost), left=", ".join(left)))
        ended = run_what_is_missing(lost, ended.problems)
        if ended.exit_code == EXIT_STOPPED and not stopping.event.is_set():  # only theirs are missing
            ended = replace(ended, exit_code=EXIT_UNREACHABLE)
    while ended.ok and not stopping.event.is_set():
        if lonely := again.alone(campaign):  # it was killed there, and the record came home
            again.set_aside(writer, lonely, output.say)
        elif again.repeats_left(campaign) and (found := again.of_this_look(campaign, ["disturbed"])):
            again.set_aside(writer, found, output.say)
        elif not go_on(writer, output.say, time.monotonic() - begun_s):
            break
        ended = run_what_is_missing()
    ended = _closed(writer, ended, stopping)
    for problem in dict.fromkeys(ended.problems):
        output.problem(problem)
    code = stopping.exit_code if stopping.exit_code is not None and not ended.ok else ended.exit_code
    left_s = testbed.now.time_left_s
    within_s = None if left_s is None else begun_s + left_s - time.monotonic()
    made = report_of(campaign, output, within_s=within_s) if how.report and campaign.launch_ids() else None
    stopped = stopping.exit_code is not None
    log = campaign.path / "ansible.log"
    if code not in (EXIT_OK, EXIT_BAD_ANSWER) and not stopped and log.exists():
        output.say(say("run.log", log=log))
    shown = closing_lines(made.closing, output, most=PICTURE_MOST) if made else []
    data, lines = answer_of(campaign, made, shown, time.monotonic() - begun_s, stopped=stopped)
    if code == EXIT_BAD_ANSWER:
        lines.append(
            say("run.exit_because", what="report" if made else "campaign", code=code, troubles=troubles_of(campaign))
        )
    return CampaignRun(campaign=campaign, code=code, data=data, lines=lines)


def _made_for(writer: CampaignWriter, testbed: _EpochTestbed) -> testbeds.Testbed:
    """Return the testbed for the epoch that is due; where it cannot be made, the campaign is interrupted."""
    try:
        return testbed.of_epoch(due_epoch(writer.campaign))
    except BaseException:
        writer.finish("interrupted", at=datetime.now(UTC))
        raise


def _closed(writer: CampaignWriter, ended: CampaignEnd, stopping: Stopping) -> CampaignEnd:
    """Mark how a campaign ended in which no launch may be missing, and which yet is not complete.

    It is not decided what follows, or native tools have still to run after its last launches.
    """
    campaign = writer.campaign
    done = not again.alone(campaign) and next_step(campaign) == "done"
    if not ended.ok or (done and campaign.meta.status == "finished"):
        return ended
    writer.finish("finished" if done else "interrupted", at=datetime.now(UTC))
    return ended if done else replace(ended, ok=False, exit_code=stopping.exit_code or EXIT_STOPPED)


def _run(session: Session, runner: Runner, progress: Progress, state: RunState) -> CampaignEnd:
    """Run one session to its end, and leave of the campaign's working folder what a later one needs."""
    campaign = session.writer.campaign
    look = f", {state.look}" if state.look else ""
    left_s = state.left_s(time.monotonic()) if state.done else campaign.plan.estimate.wall_s
    progress.note(
        say(
            "run.campaign",
            campaign_id=campaign.campaign_id,
            look=look,
            n=state.total - state.done,
            testbed=session.testbed.name,
            time=clock(left_s),
        )
    )
    whole = False
    try:
        ended = session.carry_out(runner)
        whole = ended.ok
    finally:
        progress.close()
        tidy(session.writer, whole=whole)
    return ended


def _meta(request: Request, plan: Plan, testbed: testbeds.Testbed, results: Path, how: MeasureOptions) -> CampaignMeta:
    now = datetime.now(UTC)
    revision, dirty = revision_of(request.checkout.root)
    build = build_digest(request.checkout)
    return CampaignMeta(
        schema_=CampaignMeta.schema_id(),
        # at random: two of the same plan may begin in the same second, and hosts keep what they are brought by the name
        campaign_id=campaign_id(now, secrets.token_hex(4)),
        created_utc=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        status="running",
        sweep=request.sweep_name,
        testbed=TestbedFacts(
            name=testbed.name, kind=str(testbed.kind), hosts=tuple(host.name for host in testbed.hosts)
        ),
        seed=plan.seed,
        plan_hash=plan.plan_hash,
        tool=ToolFacts(version=__version__, revision=revision, dirty=dirty),
        command=("cadge", *typed()),
        planned=PlanSize(
            points=len(plan.points),
            attempts=sum(len(launch.point_ids) for launch in plan.launches),
            launches=len(plan.launches),
            wall_s=plan.estimate.wall_s,
        ),
        build=build,
        selftest=_selftest(how, selftests_of(results), build),
    )


def _selftest(how: MeasureOptions, folder: Path, build: str) -> SelftestPin | None:
    """Return what a new campaign keeps of a self-test. Raises NotFoundError, FormatError for one that was asked for."""
    newest = newest_selftest(folder, build=build)
    if how.selftest_id is None:
        return newest.pin() if newest else None
    if how.selftest_id == "last":
        if newest is None:
            raise NothingSelectedError(say("run.no_selftest", folder=folder), commands=("cadge selftest",))
        return newest.pin(asked=True)
    return read_selftest(selftest_file(folder, how.selftest_id)).pin(asked=True)


def revision_of(root: Path) -> tuple[str, bool]:
    """Return the checkout's revision and whether it has changes of its own; a release's as its file says.

    Unknown without git.
    """
    of_release = root / "REVISION"
    if of_release.is_file():  # git would answer for a repository around it
        said = of_release.read_text(encoding="ascii").strip()
        return said.removesuffix("-dirty"), said.endswith("-dirty")
    base = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
    try:
        head = subprocess.run([*base, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=20, check=True)
        status = subprocess.run(
            [*base, "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown", False
    return head.stdout.strip(), bool(status.stdout.strip())
