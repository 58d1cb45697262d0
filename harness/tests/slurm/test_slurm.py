# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps on a real Slurm, by a user who has no root, and no login by SSH on any node."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from cluster import SlurmCluster
from conftest import MakeCluster

from cadge_results import Campaign, Store

pytestmark = pytest.mark.long

CADGE = Path(sys.executable).with_name("cadge")
LAYERS = '--layers "sockets-tcp mpi-p2p"'
RUN = f"{CADGE} run --testbed slurm:data0 --sweep smoke {LAYERS} --results results --no-report"

PLACES = "SELECT DISTINCT place FROM attempts WHERE status = $$valid$$ AND place IS NOT NULL"


def stored(cluster: SlurmCluster) -> Campaign:
    """Return the user's newest campaign, which lies in a home that all hosts share."""
    return Store(cluster.home / "results").open("last", measured=False)


def valid(campaign: Campaign) -> set[str]:
    """Return the layers that have valid attempts; no attempt may be anything else."""
    outcomes = [one for one in campaign.outcomes() if one.attempt is not None]
    assert {one.status for one in outcomes} == {"valid"}
    return {one.point.subject.layer for one in outcomes if one.point.subject.kind == "layer"}


def await_end(cluster: SlurmCluster, job: int, within_s: int = 240) -> str:
    """Wait until a job has ended; returns its exit code, as scontrol shows it."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        shown = cluster.root(cluster.names[0], f"scontrol show job {job}")
        if not any(state in shown for state in ("PENDING", "RUNNING", "COMPLETING")):
            return shown.partition("ExitCode=")[2].partition(":")[0]
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
        assert {record.started_by for record in campaign.launches()} == {"", "slurm 22.05.8, srun"}
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


def test_a_stopped_job_is_continued_by_another(make_cluster: MakeCluster) -> None:
    with make_cluster(2) as cluster:
        words = RUN.partition(" run ")[2]
        code, said = cluster.user(f"{CADGE} submit --time 30 {words} --launches 6")
        assert (code, said.splitlines()[0]) == (0, "job 1 is submitted"), said
        until = time.monotonic() + 90
        while time.monotonic() < until and not list(cluster.home.glob("results/*/launches/*.json")):
            time.sleep(0.5)
        cluster.root("h1", "scancel --signal=TERM --batch 1")
        assert await_end(cluster, 1) == "6", (cluster.home / "cadge-1.log").read_text()
        begun = {path.name: path.read_bytes() for path in cluster.home.glob("results/*/launches/*.json")}
        assert begun
        code, said = cluster.user(f"{CADGE} submit --resume last --time 30 {words.replace('--sweep smoke', '')}")
        assert code == 2, "options of a new campaign are none of resume's"
        where = "--testbed slurm:data0 --results results --no-report"
        code, said = cluster.user(f"{CADGE} submit --resume last --time 30 {where}")
        assert code == 0, said
        assert await_end(cluster, 2) == "0", (cluster.home / "cadge-2.log").read_text()
        campaign = stored(cluster)
        assert not campaign.missing_launch_ids()
        after = {path.name: path.read_bytes() for path in cluster.home.glob("results/*/launches/*.json")}
        assert {name: after[name] for name in begun} == begun


def test_a_node_that_goes_costs_no_finished_launch(make_cluster: MakeCluster) -> None:
    with make_cluster(2) as cluster:
        with cluster.start(f"salloc -N2 --exclusive {RUN} --launches 9") as run:
            until = time.monotonic() + 90
            while time.monotonic() < until and not list(cluster.home.glob("results/*/launches/*.json")):
                time.sleep(0.5)
            cluster.root("h1", "scontrol update nodename=h2 state=down reason=test")
            said, _ = run.communicate(timeout=200)
        assert run.returncode in (4, 6, 143), said
        begun = {path.name: path.read_bytes() for path in cluster.home.glob("results/*/launches/*.json")}
        assert begun
        cluster.root("h1", "scontrol update nodename=h2 state=resume || true")  # it may be back by itself
        cluster.await_idle()
        resume = f"{CADGE} resume --testbed slurm:data0 --results results --no-report"
        code, said = cluster.user(f"salloc -N2 --exclusive {resume}")
        assert code == 0, said
        assert not stored(cluster).missing_launch_ids()
        after = {path.name: path.read_bytes() for path in cluster.home.glob("results/*/launches/*.json")}
        assert {name: after[name] for name in begun} == begun


def test_what_is_wrong_is_said_before_anything_is_measured(make_cluster: MakeCluster) -> None:
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
