# SPDX-License-Identifier: BSD-3-Clause
"""The umask is the user's: nothing that a campaign leaves is wider, and it works with a narrow one from end to end."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cadge_harness.run import ansible_files
from cadge_harness.testbed import emulated, host_files
from cadge_results import Campaign, CampaignWriter, Store
from cadge_results.store.checksum import beside
from cadge_results.store.verify import verify

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("CADGE_BUILD") or ROOT / "build")
SWEEP = """\
schema: cadge.sweep/2
title: as small as a campaign may be
layers: sockets-tcp
places: within
waits: block
patterns: [{pattern: rpc, request_bytes: 8B}]
launches: 2
floors: false
duration: {default: 20ms}
"""
NODES = Path.home() / ".cache/cadge"
"""Where hosts keep what they need while they measure; emulated ones share this machine's files."""
SECRETS = {"token", "campaign.tar.gz", "run-variables.json", "variables.json", "id_ed25519", "host_key"}

real = pytest.mark.skipif(
    not (BUILD / "bin/cadge-driver").is_file(), reason=f"{BUILD} holds no programs; run: make build"
)


class User:
    """Somebody with a umask, whose state, scratch files and results lie below one folder."""

    def __init__(self, folder: Path, umask: int) -> None:
        self.folder, self.umask = folder, umask
        for name in ("state", "tmp"):
            (folder / name).mkdir(mode=0o700)
        plain = {k: v for k, v in os.environ.items() if k not in {"TESTBED", "INVENTORY", "LAYERS", "SWEEP"}}
        own = {"CADGE_ROOT": str(ROOT), "CADGE_BUILD": str(BUILD), "CADGE_LOCK": str(folder / "lock"), "NO_COLOR": "1"}
        places = {"TMPDIR": "tmp", "CADGE_STATE": "state", "CADGE_RESULTS": "results"}
        self.environment = {**plain, **own, **{name: str(folder / place) for name, place in places.items()}}
        self.sweep = folder / "one.yml"
        self.sweep.write_text(SWEEP)
        self.sweep.chmod(0o600)
        self.known = set(folder.rglob("*"))

    def start(self, *argv: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "cadge_cli.cli", *argv],
            env=self.environment,
            umask=self.umask,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *argv: str) -> None:
        process = self.start(*argv)
        out, err = process.communicate(timeout=200)
        assert process.returncode in {0, 1}, f"{out}\n{err}"

    def campaign(self) -> Campaign:
        return Store(self.folder / "results").open("last")

    def made(self) -> list[Path]:
        """Return everything that is new, but no links: those have no modes. What goes meanwhile is left out."""
        found = (Path(place) / name for place, dirs, files in os.walk(self.folder) for name in (*dirs, *files))
        return [path for path in found if path not in self.known and not path.is_symlink()]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: ssh puts sockets below it."""
    with tempfile.TemporaryDirectory(prefix="cadge-umask-") as made:
        yield Path(made)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def check_modes(campaign: Campaign, umask: int) -> None:
    """Hold that the files of a campaign with a report are as wide as the umask lets them be, and no wider."""
    assert {oct(mode(path)) for path in campaign.path.rglob("*") if mode(path) & umask} == set()
    read_only = [campaign.layout.plan, *campaign.layout.launches.iterdir()]
    assert {mode(path) for path in read_only} == {0o444 & ~umask}
    assert {mode(path) for path in (campaign.layout.meta, campaign.layout.report)} == {0o666 & ~umask}
    assert mode(campaign.path) == 0o777 & ~umask


def cut_short(path: Path) -> None:
    usual = mode(path)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:100])
    path.chmod(usual)


def store_as_failed(campaign: Campaign, launch_id: str, umask: int) -> None:
    """Put another record in the place of one, as if the launch had failed."""
    record = campaign.launch(launch_id).model_copy(update={"status": "failed", "reason": "peer lost", "result": None})
    before = os.umask(umask)
    try:
        beside(campaign.layout.launch(launch_id)).unlink()
        campaign.layout.launch(launch_id).unlink()
        with CampaignWriter.resume(campaign.path) as writer:
            writer.add_launch(record)
            writer.finish("finished", at=datetime.now(UTC))
    finally:
        os.umask(before)
        campaign.forget(launch_id)


@real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("testbed", "umask"),
    [
        pytest.param("local", 0o077, marks=pytest.mark.long),  # test_cli_campaign.py has it too
        pytest.param("local", 0o027, marks=pytest.mark.long),
        pytest.param(
            "emulated",
            0o077,
            marks=[pytest.mark.long, pytest.mark.skipif(os.geteuid() != 0, reason="namespaces take root")],
        ),
    ],
)
def test_a_campaign_from_end_to_end(testbed: str, umask: int, folder: Path) -> None:
    user = User(folder, umask)
    user.run("plan", "--sweep", str(user.sweep), "--testbed", testbed, "--write", str(folder / "plan.json"))
    user.run("run", "--sweep", str(user.sweep), "--testbed", testbed)
    campaign = user.campaign()
    damaged, failed = sorted(campaign.launch_ids())
    cut_short(campaign.layout.launch(damaged))
    store_as_failed(campaign, failed, umask)
    user.run("verify", "--repair")
    user.run("resume", "--failed")
    assert campaign.missing_launch_ids() == campaign.troubled_launch_ids() == ()
    assert campaign.made_again() == {"damaged": {damaged}, "failed": {failed}}
    assert verify(campaign).damages == []
    assert campaign.meta.status == "finished"
    user.run("report")
    user.run("export", "-o", str(folder / "numbers.csv"))
    wide = [f"{mode(path):o} {path.relative_to(folder)}" for path in user.made() if mode(path) & umask]
    assert wide == []
    check_modes(campaign, umask)
    assert {mode(folder / name) for name in ("plan.json", "numbers.csv")} == {0o666 & ~umask}
    assert not list(NODES.glob(f"{campaign.campaign_id}*"))


@real
@pytest.mark.slow
@pytest.mark.long
def test_no_secret_is_readable_where_everything_is(folder: Path) -> None:
    """Killed while it measures, with a umask of 0: what lies about then is what lies about while it runs."""
    user = User(folder, 0)
    user.sweep.write_text(SWEEP.replace("20ms", "1s"))
    process = user.start("run", "--sweep", str(user.sweep), "--testbed", "local", "--no-report")
    deadline_s = time.monotonic() + 100
    on_node: list[Path] = []
    try:
        while time.monotonic() < deadline_s and not any(path.name.endswith(".0.log") for path in on_node):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
            if list((folder / "results").glob("*/campaign.json")):
                on_node = list(NODES.glob(f"{user.campaign().path.name}-*/**/*"))
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    made = [*user.made(), *on_node]
    assert Counter(path.name for path in made if path.name in SECRETS) >= Counter({"token": 2, "campaign.tar.gz": 1})
    for path in made:
        if path.name in SECRETS and path.exists():
            assert mode(path) == 0o600, path
    assert {mode(path) for path in NODES.glob(f"{user.campaign().path.name}-*")} == {0o700}
    own = {"launches", "logs", "done", "collected", "node.json", "folders.json"}
    assert {mode(path) & 0o077 for path in on_node if path.name in own} == {0}
    user.run("resume", "--no-report")
    assert user.campaign().meta.status == "finished"
    assert not list(NODES.glob(f"{user.campaign().campaign_id}*"))


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A umask of 0."""
    old = os.umask(0)
    yield
    os.umask(old)


def test_keys_and_variables_are_the_users_alone(
    open_umask: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_umask is None
    monkeypatch.setenv("CADGE_STATE", str(tmp_path / "state"))
    folder = emulated.state_folder()
    assert mode(folder) == 0o700
    host_files.write_files(folder, ["h1"])
    ansible_files.write_secret(tmp_path / "token")
    ansible_files.write_json(tmp_path / "variables.json", {"a": 1})
    assert json.loads((tmp_path / "variables.json").read_text()) == {"a": 1}
    found = [path for path in tmp_path.rglob("*") if path.name in SECRETS]
    assert len(found) == 5
    assert {mode(path) for path in found} == {0o600}
