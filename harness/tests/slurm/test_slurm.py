# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps on a real Slurm, by a user who has no root, and no login by SSH on any node."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest
from cluster import SlurmCluster, lacks_cgroup
from conftest import MakeCluster

from cadge_results import Campaign, Store

pytestmark = pytest.mark.long

CADGE = Path(sys.executable).with_name("cadge")
BRIEF, SLOW = (Path(__file__).with_name(name) for name in ("brief.yml", "slow.yml"))
WHERE = "--testbed slurm:data0 --results results --no-report"
RUN = f"{CADGE} run {WHERE} --sweep {BRIEF}"

ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
"""Others pass: a job that is told its end, for instance, is SIGNALING for a moment."""

PLACES = "SELECT DISTINCT place FROM attempts WHERE status = $$valid$$ AND place IS NOT NULL"


def stored(cluster: SlurmCluster) -> Campaign:
    """Return the user's newest campaign, which lies in a home that all hosts share."""
    return Store(cluster.home / "results").open("last", measured=False)


def valid(campaign: Campaign) -> set[str]:
    """Return the layers that have valid attempts; none of theirs may be anything else."""
    outcomes = [one for one in campaign.outcomes() if one.attempt is not None and one.point.subject.kind == "layer"]
    assert {one.status for one in outcomes} == {"valid"}
    return {one.point.subject.layer for one in outcomes}


def launches_of(cluster: SlurmCluster) -> dict[str, bytes]:
    """Return what is stored of each launch."""
    return {path.name: path.read_bytes() for path in cluster.home.glob("results/*/launches/*.json")}


def await_launches(cluster: SlurmCluster, count: int = 1, within_s: int = 90) -> None:
    """Wait until so many launches are stored."""
    until = time.monotonic() + within_s
    while time.monotonic() < until and len(launches_of(cluster)) < count:
        time.sleep(0.2)
    assert len(launches_of(cluster)) >= count


def log_of(cluster: SlurmCluster, job: int) -> str:
    """Return what a submitted job has printed."""
    return (cluster.home / f"cadge-{job}.log").read_text()


def await_end(cluster: SlurmCluster, job: int, within_s: int = 240) -> tuple[str, str]:
    """Wait until a job has ended; returns its state and its exit code, as scontrol shows them."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        shown = cluster.root(cluster.names[0], f"scontrol show job {job}")
        found = re.search(r"JobState=(\w+).*ExitCode=(\d+):", shown, re.DOTALL)
        assert found, shown
        if found[1] in ENDED:
            return found[1], found[2]
        time.sleep(0.5)
    raise AssertionError(shown)


def test_an_allocation_is_a_testbed(make_cluster: MakeCluster) -> None:
    with make_cluster(2) as cluster:
        assert cluster.user("ssh -o BatchMode=yes h2 true")[0] == 255
        code, said = cluster.user(f"salloc -N2 --exclusive {RUN}")
        assert code == 0, said
        campaign = stored(cluster)
        assert valid(campaign) == {"sockets-tcp", "mpi-p2p"}
        assert campaign.meta.testbed.name == "slurm"
        assert campaign.meta.testbed.hosts == ("h1", "h2")
        ends = {end.host for record in campaign.launches() for end in record.launch.endpoints}
        assert ends == {"h1", "h2"}
        version = cluster.user("srun --version")[1].split()[-1]
        assert {record.started_by for record in campaign.launches()} == {"", f"slurm {version}, srun"}
        assert not [path for path in cluster.home.glob(".cache/cadge/*") if path.is_dir()]
        assert cluster.root("h2", "pgrep -f '[a]gent.pyz' || true") == ""


def test_four_nodes_of_one_processor_without_a_shared_home(make_cluster: MakeCluster) -> None:
    with make_cluster(4, shared_home=False) as cluster:
        code, said = cluster.user(f"salloc -N4 {RUN}")
        assert code == 0, said
        assert "the job has 1 processor of h1, h2, h3, h4" in said
        code, said = cluster.user(f"{CADGE} query --results results --format json '{PLACES}'")
        assert code == 0, said
        assert json.loads(said) == [{"place": "between"}], "one processor holds no two endpoints that poll"


@pytest.mark.timeout(600)
def test_jobs_that_are_too_short_make_the_campaign_one_after_the_other(make_cluster: MakeCluster) -> None:
    """The first is killed at its limit, without a word to Cadge; the next is told to stop; nothing is lost."""
    with make_cluster(2) as cluster:
        code, said = cluster.user(f"{CADGE} submit --time 3 --sbatch --signal=B:CONT@1 {WHERE} --sweep {SLOW}")
        assert (code, said.splitlines()[0]) == (0, "job 1 is submitted"), said
        await_launches(cluster)
        cluster.root("h1", "scontrol update jobid=1 endtime=now+5")
        assert await_end(cluster, 1)[0] == "TIMEOUT", log_of(cluster, 1)
        begun = launches_of(cluster)
        code, said = cluster.user(f"{CADGE} submit --resume last --time 3 {WHERE} --launches 3")
        assert code == 2, "options of a new campaign are none of resume's"
        code, said = cluster.user(f"{CADGE} submit --resume last --time 3 {WHERE}")
        assert code == 0, said
        await_launches(cluster, len(begun) + 1)
        cluster.root("h1", "scontrol update jobid=2 endtime=now+65")
        assert int(await_end(cluster, 2)[1]) == 6, log_of(cluster, 2)
        after = launches_of(cluster)
        assert {name: after[name] for name in begun} == begun, "nothing is lost or made twice"
        code, said = cluster.user(f"salloc -N2 --exclusive {CADGE} resume {WHERE}")
        assert code == 0, said
        final = launches_of(cluster)
        assert {name: final[name] for name in after} == after
        assert not stored(cluster).missing_launch_ids()


def test_a_campaign_waits_for_the_nodes_that_it_began_on(make_cluster: MakeCluster) -> None:
    with make_cluster(4) as cluster:
        words = f"{WHERE} --sweep {SLOW} --launches 2"
        cluster.user(f"{CADGE} submit --time 3 {words} --sbatch --nodelist=h2,h4")
        await_launches(cluster)
        cluster.root("h1", "scancel --signal=TERM --batch 1")
        assert await_end(cluster, 1)[1] == "6", log_of(cluster, 1)
        code, said = cluster.user(f"salloc -N2 --exclusive --nodelist=h1,h3 {CADGE} resume {WHERE}")
        assert code == 2, said
        assert "this campaign began on h2, h4, and the testbed has h1, h3" in said
        code, said = cluster.user(f"{CADGE} submit --resume last --time 3 {WHERE}")
        assert code == 0, said
        assert int(await_end(cluster, 3)[1]) == 0, log_of(cluster, 3)
        assert stored(cluster).meta.testbed.hosts == ("h2", "h4")
        assert not stored(cluster).missing_launch_ids()


def test_a_campaign_outlives_slurms_controller_and_its_own(make_cluster: MakeCluster) -> None:
    """Slurm's controller restarts between two blocks, of which the second begins with a step; then Cadge is killed."""
    with make_cluster(2) as cluster:
        resume = f"{CADGE} resume {WHERE}"
        with cluster.start(f"salloc -N2 --exclusive sh -c '{RUN} --launches 4; {resume}'") as run:
            await_launches(cluster, 8)
            cluster.root("h1", "kill -KILL $(cat /run/slurmctld.pid)")
            assert {name[:3] for name in launches_of(cluster)} == {"b1-"}
            time.sleep(3)
            cluster.root("h1", "slurmctld")
            await_launches(cluster, 10)
            cluster.root("h1", "kill -KILL $(pgrep -f '[c]adge run --testbed' | tail -n 1)")
            begun = launches_of(cluster)
            said, _ = run.communicate(timeout=240)
        assert run.returncode == 0, said
        assert "Killed" in said
        after = launches_of(cluster)
        assert {name: after[name] for name in begun} == begun
        assert not [
            (record.reason, record.log_tail) for record in stored(cluster).launches() if record.status != "done"
        ]
        assert not stored(cluster).missing_launch_ids()
        for host in cluster.names:
            assert cluster.root(host, "pgrep -f '[a]gent.pyz|[c]adge-driver' || true") == ""


@pytest.mark.skipif(bool(lacks_cgroup()), reason=lacks_cgroup())
def test_a_launch_runs_where_the_steps_control_group_lets_it(make_cluster: MakeCluster) -> None:
    with make_cluster(2, cgroup=True) as cluster:
        for option, count in (("", 1), ("--exclusive", 2)):
            code, said = cluster.user(f"salloc -N2 {option} {RUN} --launches 1")
            assert code == 0, said
            (allowed,) = {tuple(node.cores["allowed"]) for node in stored(cluster).nodes()}
            assert len(allowed) == count, "a step is kept on the job's processors of its node"
            used = {cpu for record in stored(cluster).launches() for end in record.launch.endpoints for cpu in end.cpus}
            assert used == {*allowed}
            assert all(record.status == "done" for record in stored(cluster).launches())


def test_a_node_that_goes_costs_no_finished_launch(make_cluster: MakeCluster) -> None:
    with make_cluster(2) as cluster:
        with cluster.start(f"salloc -N2 --exclusive {RUN} --launches 5") as run:
            await_launches(cluster)
            cluster.root("h1", "scontrol update nodename=h2 state=down reason=test")
            said, _ = run.communicate(timeout=200)
        assert run.returncode in (4, 6, 143), said
        begun = launches_of(cluster)
        assert begun
        cluster.root("h1", "scontrol update nodename=h2 state=resume || true")  # it may be back by itself
        cluster.await_idle()
        code, said = cluster.user(f"salloc -N2 --exclusive {CADGE} resume {WHERE}")
        assert code == 0, said
        assert not stored(cluster).missing_launch_ids()
        after = launches_of(cluster)
        assert {name: after[name] for name in begun} == begun


def test_what_is_wrong_is_said_in_a_sentence(make_cluster: MakeCluster) -> None:
    with make_cluster(2) as cluster:
        run = f"{CADGE} run --sweep smoke --results results"
        variables = cluster.home / "hosts.yml"
        variables.write_text("cadge: {hosts: {n1: {}}}\n")
        variables.chmod(0o644)
        wrong = {
            f"{run} --testbed slurm": "this is no Slurm allocation: SLURM_JOB_ID is not set",
            f"salloc -N2 --exclusive {run}": "several networks: mgmt0 (198.18.0.11), data0 (198.19.0.11).",
            f"salloc -N2 --exclusive {run} --testbed slurm:ib7": "node h1 has no device ib7 with an IPv4 address",
            f"salloc -N2 {run} --testbed slurm --inventory {variables}": "a file states variables alone",
            f"{CADGE} submit --time 2 --sweep smoke": "give the job at least 3 minutes",
            f"{CADGE} submit --time 20 --sweep smoke --partition nosuch": "No such option '--partition'",
            f"{CADGE} submit --time 20 --sweep smoke --sbatch --partition=nosuch": "sbatch refuses the job",
        }
        for script, sentence in wrong.items():
            code, said = cluster.user(script)
            assert code in (2, 3), (script, said)
            assert sentence in said, script
        assert not (cluster.home / "results").exists()
        code, said = cluster.user(f"salloc -N1 --exclusive {CADGE} plan --testbed slurm:data0 --sweep smoke --no-look")
        assert code == 0, said
        assert "the job has one node, h1: nothing is measured between hosts" in said
        with cluster.start(f"salloc -N2 --exclusive {RUN} --launches 8") as run:
            await_launches(cluster)
            cluster.root("h1", "scancel $(squeue -h -o %i)")
            said, _ = run.communicate(timeout=120)
        assert run.returncode == 6, said
        assert said.count("Slurm has ended the job, and its hosts are gone") == 1
