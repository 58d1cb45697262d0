# SPDX-License-Identifier: BSD-3-Clause
"""The workflow that users copy: its run steps, with the variables that GitHub sets, against a stand-in for its API.

In the short form `cadge run` gives campaigns that were made up; `cadge compare` and everything else are real. The long
form measures. GitHub's own actions (checkout, cache, upload) are played by the test, as far as files go.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KIT = ROOT / "ci/kit"
WORKFLOW = yaml.safe_load((KIT / "compare.yml").read_text())
STEPS = WORKFLOW["jobs"]["compare"]["steps"]
MADE_UP = """\
import json, sys
sys.path.insert(0, {tests!r})
import synthetic
from pathlib import Path

def slow(point, attempt, number):
    if {slow} and point["subject"]["layer"] == "sockets-tcp" and "latency" in attempt["quantities"]:
        synthetic.set_samples(attempt, [(60000 + number, 2000)])

argv = sys.argv[1:]
results = Path(argv[argv.index("--results") + 1])
options = synthetic.Options(
    layers=synthetic.LAYERS[:6], sizes=(8, 4096), places=("within",), waits=("poll",), troubles=False,
    launches=9, samples=200, seed={seed}, attempt_hook=slow,
)
campaign = synthetic.make(results, options)
campaign.layout.report.write_text("<!doctype html>made up")
print(json.dumps({{"data": {{"campaign_id": campaign.path.name, "report": str(campaign.layout.report)}}}}))
"""


@dataclass
class Api:
    """GitHub, as far as comments go."""

    url: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200


@pytest.fixture
def api() -> Iterator[Api]:
    found = Api()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            found.asked.append((self.command, self.path, self.headers["Authorization"]))
            said: object = {}
            if self.command == "GET":
                page = int(self.path.rpartition("=")[2])
                said = found.comments[(page - 1) * 100 : page * 100]
            elif self.command == "POST":
                bot = {"type": "Bot", "login": "github-actions[bot]"}
                found.comments.append({"id": len(found.comments) + 1, "user": bot, **body})
            else:
                found.comments[int(self.path.rpartition("/")[2]) - 1].update(body)
            data = json.dumps(said).encode()
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - names of the library

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Job:
    """One run of the job in a workspace that outlives it no more than on a runner: `cache` is what stays."""

    folder: Path
    cache: Path
    event: str
    api: Api
    log: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    summary: str = ""
    kept: dict[str, str] = field(default_factory=dict)

    def begin(self, seed: int = 1, *, slow: bool = False, real: bool = False) -> None:
        """Play the checkouts; unless `real`, the Cadge that is built measures nothing."""
        (self.folder / "cadge/ci").mkdir(parents=True)
        shutil.copytree(KIT, self.folder / "cadge/ci/kit")
        (self.folder / "cadge/Makefile").write_text("build:\n\t@echo built\n")
        program = self.folder / "cadge/.venv/bin/cadge"
        program.parent.mkdir(parents=True)
        code = self.folder / "made_up.py"
        code.write_text(MADE_UP.format(tests=str(ROOT / "analysis/tests"), seed=seed, slow=slow))
        fake = f'[ "$1" != run ] || exec {sys.executable} {code} "$@"\n' if not real else ""
        program.write_text(f'#!/bin/sh\n{fake}CADGE_ROOT={ROOT} exec {sys.executable} -m cadge_cli.cli "$@"\n')
        program.chmod(0o755)
        event = {"pull_request": {"number": 17}} if self.event == "pull_request" else {}
        (self.folder / "event.json").write_text(json.dumps(event))

    def run(self, *, same_repository: bool = True) -> int:
        """Run the steps in their order; return the first failure's exit code."""
        for step in STEPS:
            condition = step.get("if", "")
            if "'pull_request'" in condition and not (self.event == "pull_request" and same_repository):
                continue
            if "'push'" in condition and self.event != "push":
                continue
            name = str(step.get("uses", "")).partition("@")[0]
            if name == "actions/cache/restore" and self.cache.exists():
                shutil.copytree(self.cache, self.folder / "baseline")
            elif name == "actions/cache/save":
                shutil.rmtree(self.cache, ignore_errors=True)
                shutil.copytree(self.folder / "baseline", self.cache)
            elif name == "actions/upload-artifact":
                paths = self.fill(step["with"]["path"]).split()
                self.kept = {Path(path).name: (self.folder / path).read_text() for path in paths}
            elif "run" in step and (code := self.step(step)):
                return code
        return 0

    def step(self, step: dict[str, Any]) -> int:
        out, summary = self.folder / "output", self.folder / "summary"
        out.write_text("")
        summary.touch()
        assert "${{" not in step["run"]  # what a pull request says never becomes a part of a script
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CI": "true",
            "GITHUB_OUTPUT": str(out),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_REPOSITORY": "someone/project",
            "GITHUB_API_URL": self.api.url,
            **WORKFLOW["env"],
            **{name: self.fill(value) for name, value in step.get("env", {}).items()},
        }
        argv = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
        done = subprocess.run(argv, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        self.log += done.stdout + done.stderr
        self.summary = summary.read_text()
        if "id" in step:
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in out.read_text().splitlines())
        return done.returncode

    def fill(self, text: str) -> str:
        """Put in what GitHub would put in for the expressions that the workflow has."""

        def value(match: re.Match[str]) -> str:
            words = match[1].strip().split(".")
            if words == ["github", "token"]:
                return "secret-token"
            assert (words[0], words[2]) == ("steps", "outputs")
            return self.outputs[words[1]][words[3]]

        return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def job(tmp_path: Path, name: str, event: str, api: Api) -> Job:
    folder = tmp_path / name
    folder.mkdir()
    return Job(folder, tmp_path / "cache", event, api)


@pytest.mark.long
@pytest.mark.spare
def test_a_baseline_then_a_pull_request_that_is_slower_then_one_that_is_not(tmp_path: Path, api: Api) -> None:
    first = job(tmp_path, "push", "push", api)
    first.begin()
    assert first.run() == 0, first.log
    assert first.outputs["compare"]["verdict"] == "none"
    assert "There is no baseline for this kind of runner yet" in first.summary
    assert api.asked == []
    assert len(list(first.cache.glob("*/campaign.json"))) == 1

    slower = job(tmp_path, "slower", "pull_request", api)
    slower.begin(seed=2, slow=True)
    assert slower.run() == 1, slower.log
    assert slower.outputs["compare"]["verdict"] == "slower"
    assert "slower than the baseline (slower:10%)" in slower.log
    assert [one[:2] for one in api.asked] == [
        ("GET", "/repos/someone/project/issues/17/comments?per_page=100&page=1"),
        ("POST", "/repos/someone/project/issues/17/comments"),
    ]
    assert {one[2] for one in api.asked} == {"Bearer secret-token"}
    assert "secret-token" not in slower.log
    body = api.comments[0]["body"]
    assert body == f"<!-- cadge compare -->\n{slower.kept['compare.md']}"
    assert "slower" in body
    assert "sockets-tcp" in body
    assert slower.summary == slower.kept["compare.md"]
    assert slower.kept["report.html"].startswith("<!doctype html>")

    again = job(tmp_path, "again", "pull_request", api)
    again.begin(seed=3)
    assert again.run() == 0, again.log
    assert again.outputs["compare"]["verdict"] == "fine"
    assert len(api.comments) == 1  # changed, and no second one
    assert api.asked[-1][:2] == ("PATCH", "/repos/someone/project/issues/comments/1")
    assert again.kept["compare.md"] in api.comments[0]["body"]

    fork = job(tmp_path, "fork", "pull_request", api)
    fork.begin(seed=4)
    asked = len(api.asked)
    assert fork.run(same_repository=False) == 0, fork.log
    assert len(api.asked) == asked
    assert fork.summary


def call(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    every = {"PATH": os.environ["PATH"], **env}
    return subprocess.run([str(KIT / "compare"), *argv], env=every, capture_output=True, text=True, check=False)


def test_comments_of_others_stay_and_a_long_table_is_cut(tmp_path: Path, api: Api) -> None:
    mark = "<!-- cadge compare -->\n"
    api.comments = [{"id": n + 1, "user": {"type": "User"}, "body": f"{mark}quoted"} for n in range(130)]
    event, table = tmp_path / "event.json", tmp_path / "table.md"
    event.write_text('{"pull_request": {"number": 3}}')
    table.write_text("| a long row of the table |\n" * 4000)
    env = {
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_API_URL": api.url,
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_TOKEN": "t0p",
    }
    assert call("comment", str(table), **env).returncode == 0
    assert [one[0] for one in api.asked] == ["GET", "GET", "GET", "POST"]
    assert all(one["body"] == f"{mark}quoted" for one in api.comments[:130])
    assert len(api.comments[130]["body"].encode()) < 65536
    assert api.comments[130]["body"].endswith("the job's summary has all of it.\n")
    api.status = 403
    refused = call("comment", str(table), **env)
    assert refused.returncode == 1
    assert "::error::GitHub answered 403" in refused.stderr
    assert "t0p" not in refused.stderr
    refused = call("comment", str(table), **env | {"GITHUB_API_URL": "http://127.0.0.1:9"})
    assert (refused.returncode, "GitHub cannot be asked" in refused.stderr) == (1, True)


def test_wrong_calls_and_judgement() -> None:
    assert call().returncode == 2
    assert call("compare").returncode == 2
    assert call("measure", "only-one").returncode == 2
    assert call("judge", VERDICT="fine").returncode == 0
    assert call("judge", VERDICT="slower").returncode == 1


def test_the_workflow_pins_what_it_uses_and_asks_for_little() -> None:
    for step in STEPS:
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", step["uses"])
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW["jobs"]["compare"]["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert "pull_request_target" not in (KIT / "compare.yml").read_text()


@pytest.mark.long
@pytest.mark.alone
def test_the_workflow_with_real_campaigns(tmp_path: Path, api: Api) -> None:
    for name, event in (("push", "push"), ("request", "pull_request")):
        real = job(tmp_path, name, event, api)
        real.begin(real=True)
        # between two runs of the same build nothing is judged here: how noisy this machine is, is not the kit's matter
        assert real.run() in (0, 1), real.log
        assert real.kept["report.html"].startswith("<!doctype html>")
    assert real.outputs["compare"]["verdict"] in ("fine", "slower")
    assert api.comments
