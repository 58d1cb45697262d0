# SPDX-License-Identifier: BSD-3-Clause
"""The workflow that users copy: its run steps, with the variables that GitHub sets, against a stand-in for its API.

Cadge is made up, but for the long form, which measures. GitHub's own actions (checkout, upload) are played by the test,
as far as files go.
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
FAKE = """\
#!{python}
import json, sys
from pathlib import Path

argv = sys.argv[1:]
with open({log!r}, "a") as log:
    print(*argv, file=log)
code, problems, data = 0, [], {{}}
if argv[0] == "provider":
    assert Path(argv[4].removeprefix("prefix:"), "lib").is_dir()
    data = {{"name": argv[2].replace("+", "-1.2+")}}
else:
    text = "<!doctype html>made up" if argv[0] == "report" else "| a table |\\n"
    Path(argv[argv.index("-o") + 1]).write_text(text)
    if argv[0] == "ab":
        code, problems = json.loads({ended!r})
        data = {{"campaign_id": "the-campaign"}}
print(json.dumps({{"ok": not code, "code": code, "data": data, "problems": problems}}))
sys.exit(code)
"""
LIBRARY = {
    "autogen.sh": "#!/bin/sh\n",
    "configure": '#!/bin/sh\necho "install:; mkdir -p ${1#--prefix=}/lib" >Makefile\n',
}
"""Of the project whose pull requests are measured: what its build asks for."""


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
    """One run of the job in a workspace."""

    folder: Path
    api: Api
    log: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    summary: str = ""
    kept: dict[str, str] = field(default_factory=dict)

    def begin(self, code: int = 0, *problems: str) -> None:
        """Play the checkouts; the Cadge that is built measures nothing, and `cadge ab` ends so."""
        shutil.copytree(KIT, self.folder / "cadge/ci/kit")
        (self.folder / "cadge/Makefile").write_text("build:\n\t@echo built\n")
        program = self.folder / "cadge/.venv/bin/cadge"
        program.parent.mkdir(parents=True)
        asked = str(self.folder / "asked")
        program.write_text(FAKE.format(python=sys.executable, log=asked, ended=json.dumps([code, problems])))
        program.chmod(0o755)
        for side in ("base", "head"):
            (self.folder / side).mkdir()
            for name, text in LIBRARY.items():
                (self.folder / side / name).write_text(text)
                (self.folder / side / name).chmod(0o755)
        (self.folder / "event.json").write_text(json.dumps({"pull_request": {"number": 17}}))

    def run(self, *, same_repository: bool = True) -> int:
        """Run the steps in their order; return the first failure's exit code."""
        for step in STEPS:
            if "head.repo" in step.get("if", "") and not same_repository:
                continue
            name = str(step.get("uses", "")).partition("@")[0]
            if name == "actions/upload-artifact":
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
            "GITHUB_WORKSPACE": str(self.folder),
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


@pytest.fixture
def job(tmp_path: Path, api: Api) -> Job:
    return Job(tmp_path, api)


def test_a_pull_request_that_is_slower(job: Job, api: Api) -> None:
    job.begin(8, "--fail-on slower: 1 of 3 points by 10 % or more")
    assert job.run() == 1, job.log
    assert "slower than the base (slower:10%)" in job.log
    asked = [line.split() for line in (job.folder / "asked").read_text().splitlines()]
    assert [one[:3] for one in asked] == [
        ["provider", "add", "ucx+base"],
        ["provider", "add", "ucx+head"],
        ["ab", "provider:ucx-1.2+base", "provider:ucx-1.2+head"],
        ["report", "the-campaign", "--results"],
    ]
    assert [one[:2] for one in api.asked] == [
        ("GET", "/repos/someone/project/issues/17/comments?per_page=100&page=1"),
        ("POST", "/repos/someone/project/issues/17/comments"),
    ]
    assert {one[2] for one in api.asked} == {"Bearer secret-token"}
    assert "secret-token" not in job.log
    table = "- --fail-on slower: 1 of 3 points by 10 % or more\n\n| a table |\n"
    assert api.comments[0]["body"] == f"<!-- cadge compare -->\n{table}"
    assert job.summary == job.kept["compare.md"] == table
    assert job.kept["report.html"].startswith("<!doctype html>")


@pytest.mark.parametrize(("code", "verdict"), [(0, "fine"), (1, "fine"), (5, "none")])
def test_a_pull_request_that_is_not_slower_or_of_which_nothing_is_known(
    job: Job, api: Api, code: int, verdict: str
) -> None:
    mark = "<!-- cadge compare -->\n"
    api.comments = [{"id": 1, "user": {"type": "Bot"}, "body": f"{mark}an earlier table"}]
    job.begin(code, *(["--fail-on slower has no answer"] if code == 5 else []))
    assert job.run() == 0, job.log
    assert job.outputs["compare"]["verdict"] == verdict
    assert [one["body"] for one in api.comments] == [f"{mark}{job.kept['compare.md']}"]  # changed, and no second one
    assert ("::warning::No verdict: --fail-on slower has no answer" in job.log) == (verdict == "none")


def test_a_fork_gets_a_summary_and_no_comment(job: Job, api: Api) -> None:
    job.begin()
    assert job.run(same_repository=False) == 0, job.log
    assert api.asked == []
    assert job.summary == "| a table |\n"


def test_a_side_that_cannot_be_measured_fails_the_job(job: Job, api: Api) -> None:
    job.begin(3)
    assert job.run() == 1
    assert "::error::cadge ab ended with 3" in job.log
    assert api.asked == []


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
    assert call("ab", "only-one").returncode == 2
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
def test_the_programs_steps_with_a_real_campaign(tmp_path: Path) -> None:
    program = tmp_path / "cadge/.venv/bin/cadge"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nCADGE_ROOT={ROOT} exec {sys.executable} -m cadge_cli.cli "$@"\n')
    program.chmod(0o755)
    env = {"GITHUB_OUTPUT": str(tmp_path / "output"), "CADGE_LAYERS": "sockets-tcp", "CADGE_PATTERNS": "rpc"}
    env |= {"CADGE_SIZES": "8B", "CADGE_LOOKS": "9,12", "HOME": str(tmp_path), "CADGE_LOCK": str(tmp_path / "lock")}
    done = call("ab", str(tmp_path / "cadge"), str(tmp_path / "results"), "nodelay=1", "nodelay=0", **env)
    assert done.returncode == 0, done.stderr
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert outputs["verdict"] in {"fine", "slower", "none"}
    assert "| sockets-tcp, within, poll, rpc, 8 B" in Path(outputs["table"]).read_text()
    assert Path(outputs["report"]).read_text().startswith("<!doctype html>")
