# SPDX-License-Identifier: BSD-3-Clause
"""The command: quick help with examples, exit codes, one JSON object."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from cadge_cli import cli
from cadge_cli.commands import run as commands_run
from cadge_cli.commands.run import revision_of
from cadge_cli.options import results_option
from cadge_cli.output import COLUMNS, Output
from cadge_harness import errors
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import Description, read_catalogue
from cadge_harness.plan.patterns import ask_driver, differences
from cadge_harness.run import findings
from cadge_harness.run.request import read_request
from cadge_harness.testbed import testbeds
from cadge_results import PatternFile

from .conftest import TINY, WORKLOADS, Answer, FakeRunner, driver_patterns

Cadge = Callable[..., Answer]
ROOT = Path(__file__).parents[2]


def test_help_is_quick() -> None:
    """It reads no more than itself and what reads command lines: libraries for figures take a second."""
    code = """
import sys
from cadge_cli.cli import main
try:
    main(["--help"])
finally:
    print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "Examples:" in done.stdout
    modules = done.stderr.split()
    ours = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"__mp_main__", "sitecustomize"}
    assert {name for name in ours if not name.startswith("_")} == {"cadge_cli", "cadge_harness", "click"}
    assert len(modules) < 200


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from cadge_cli import cli; cli.invoke(['--help'])\n"
        "heavy = {'pydantic', 'yaml', 'rich', 'ansible', 'cadge_results', 'cadge_analysis', 'jinja2', 'numpy'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_has_examples(name: str, cadge: Cadge) -> None:
    answer = cadge(name, "--help")
    assert answer.code == 0
    assert "Examples:" in answer.out
    assert f"cadge {name}" in answer.out


def commands_below(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    """Yield every command with its sub-commands, for a terminal of 80 columns."""
    own = {"ignore_unknown_options": command.context_settings.get("ignore_unknown_options")}
    width = {"terminal_width": COLUMNS, "max_content_width": COLUMNS}
    context = click.Context(command, info_name=path, parent=parent, **width, **own)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands_below(below, name, context)


def test_the_help_of_every_command_fits_a_terminal_and_its_examples_are_commands() -> None:
    known = {context.command_path: context for context in commands_below(cli.cadge, "cadge")}
    assert len(known) > len(cli.COMMANDS) + 1
    for path, context in known.items():
        text = context.get_help()
        assert [line for line in text.splitlines() if len(line) > COLUMNS] == [], path
        for line in (one.strip() for one in text.partition("Examples:")[2].splitlines()):
            if not line.startswith("cadge ") or line.count('"') % 2:
                continue
            words = shlex.split(re.split(r" [|>&]", line)[0])
            called = max((one for one in known if words[: len(one.split())] == one.split()), key=len)
            rest = words[len(called.split()) :]
            if called == "cadge submit":  # which hands on to another command what is not its own
                _, rest, _ = known[called].command.make_parser(known[called]).parse_args(rest)
                called = "cadge resume" if "--resume" in words else "cadge run"
            known[called].command.make_parser(known[called]).parse_args(rest)  # raises for an option that is not there


def test_the_help_of_studies_names_them_all() -> None:
    text = cli.command_of("study").help  # type: ignore[union-attr]
    assert text is not None
    assert all(f" {path.name}" in text for path in (ROOT / "analysis/studies").iterdir() if path.is_dir())


@pytest.mark.parametrize("group", [[], ["testbed"], ["provider"]])
def test_no_line_of_help_is_cut(group: list[str], cadge: Cadge) -> None:
    assert "..." not in cadge(*group, "--help").out.partition("Examples:")[0].partition("[ARGS]...")[2]


def test_the_help_lists_every_exit_code(cadge: Cadge) -> None:
    text = " ".join(cadge("--help").out.split())
    assert all(f"{code} {meaning}" in text for code, meaning in errors.EXIT_CODES.items())
    assert {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 70, 130} == set(errors.EXIT_CODES)


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["pln"], 2, "no command 'pln'; did you mean plan?"),
        (["plan", "--swep", "x"], 2, "No such option"),
        (["viewer"], 2, "no command 'viewer'; there are: doctor"),
        (["help"], 2, "did you mean --help?"),
        (["testbed", "start"], 2, "no command 'start'; there are: down, example, exec, restore, status, up"),
        (["provider", "delete"], 2, "no command 'delete'; there are: add, list, remove"),
        (["study", "press", "--claims"], 2, "NAME is not for --claims"),
        (["verify", "nowhere.html"], 2, "nowhere.html cannot be read: No such file or directory"),
        (["plan", "--sweep", "defualt"], 2, "unknown sweep 'defualt'"),
        (["plan", "--sweep", "tiny", "--layers", "a-on"], 2, "unknown layer 'a-on'; did you mean a-one?"),
        (["plan", "--sweep", "tiny", "--layers", "all a-one"], 2, "--layers: 'all' takes no other names"),
        (
            ["plan", "--sweep", "tiny", "--layers", "c-three"],
            5,
            "nothing can be measured: c-three within/poll, c-three between/poll: not built",
        ),
        (["plan", "--sweep", "tiny", "--budget", "5"], 2, "--budget: 5 has no unit"),
        (["plan", "--sweep", "tiny", "--budget", "1s"], 2, "a budget of 1 s is too short for this sweep"),
        (["plan", "--sweep", "tiny", "--testbed", "moon"], 2, "moon"),
        (["plan", "--sweep", "tiny", "--pilot"], 2, "--pilot measures the baseline, and this sweep names none"),
        (["plan", "--sweep", "tiny", "--pilot", "--no-look"], 2, "--look is for a plan; a pilot measures"),
        (["status"], 5, "there is no campaign"),
        (["report"], 5, "there is no campaign"),
        (["export", "nothing"], 5, "no campaign 'nothing'"),
        (["resume"], 5, "there is no campaign"),
    ],
)
def test_mistakes_have_a_sentence_and_a_code(
    argv: list[str], code: int, said: str, checkout: Checkout, cadge: Cadge
) -> None:
    assert checkout
    answer = cadge(*argv)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    answer = cadge(*argv, "--json")
    document = json.loads(answer.out)
    assert (document["ok"], document["code"]) == (False, code)
    assert said in document["problems"][0]


def test_layers(checkout: Checkout, cadge: Cadge) -> None:
    assert checkout
    document = json.loads(cadge("layers", "--json").out)
    assert (document["ok"], document["code"], document["problems"]) == (True, 0, [])
    found = {entry["name"]: entry for entry in document["data"]["layers"]}
    assert set(found) == {"a-one", "b-two", "c-three"}
    assert {"name", "style", "substrate", "version", "available", "reason"} <= set(found["a-one"])
    assert (found["a-one"]["available"], found["a-one"]["reason"]) == (True, None)
    assert (found["c-three"]["available"], found["c-three"]["reason"]) == (
        False,
        "not built: libthree is missing (pkg-config three)",
    )
    assert "2 of 3 layers built." in cadge("layers").out
    assert json.loads(cadge("--json", "layers").out) == document


def test_layers_show_what_the_driver_says(checkout: Checkout, cadge: Cadge) -> None:
    said = {"table": {"library": {"name": "Sockets", "stated_version": "6.1"}}, "opens": []}
    checkout.driver.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(said)}\nE\n")
    assert json.loads(cadge("layers", "--json").out)["data"]["layers"][0]["version"] == "6.1"


@pytest.mark.parametrize(
    ("wanted", "only", "asked"),
    [
        ("all", (), {"a-one", "b-two"}),
        ("[b-two]", (), {"b-two"}),
        ("['*-t*']", (), {"b-two"}),
        ("[{layer: a-one, settings: {x: 1}}, b-two]", ("b-two", "c-three"), {"b-two"}),
    ],
)
def test_only_layers_in_question_are_asked(
    wanted: str, only: tuple[str, ...], asked: set[str], checkout: Checkout, tmp_path: Path
) -> None:
    said = {"table": {"library": {"name": "Sockets", "stated_version": "6.1"}}, "opens": []}
    patterns = checkout.driver.read_text()
    log = tmp_path / "asked"
    checkout.driver.write_text(
        f"#!/bin/sh\nif [ $1 = describe ]; then echo $5 >>{log}; cat <<'E'\n{json.dumps(said)}\nE\nexit; fi\n{patterns}"
    )
    sweep = tmp_path / "some.yml"
    sweep.write_text(TINY + f"waits: [poll, block]\nlayers: {wanted}\n")
    read_request(str(sweep), only=only).plan(testbeds.local())
    assert set(log.read_text().split()) == asked


def test_plan(checkout: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path) -> None:
    assert checkout
    assert runner
    answer = cadge("plan", "--sweep", "tiny", "--json", "--write", str(tmp_path / "plan.json"))
    data = json.loads(answer.out)["data"]
    assert data["points"]["planned"] > 0
    assert data["points"]["refused"] > 0
    assert data["wall_s"] > 0
    assert data["disk_bytes"] > 0
    assert data["ports"] == [18600, 18699]
    assert [block["place"] for block in data["blocks"]] == ["within", "between"]
    assert json.loads((tmp_path / "plan.json").read_text())["plan_hash"] == data["plan_hash"]
    lines = cadge("plan", "--sweep", "tiny").out.splitlines()
    assert max(map(len, lines)) <= COLUMNS
    text = " ".join(" ".join(lines).split())
    assert "time about" in text
    assert all(one in text for one in data["decides"].split("; "))
    assert data["decides"].startswith("no verdicts in ")
    assert "c-three within/poll: 2 points: not built: libthree" in text
    fewer = json.loads(cadge("plan", "--sweep", "tiny", "--layers", "a-one", "--json").out)["data"]
    assert fewer["launches"] < data["launches"]


def test_all_layers_are_those_as_well_that_a_sweep_leaves_out(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner
) -> None:
    assert runner
    path = checkout.sweeps / "tiny.yml"
    whole = path.read_text()
    path.write_text(whole + "without: [a-one, b-two]\n")
    assert cadge("plan", "--sweep", "tiny").code == 5
    left_out = json.loads(cadge("plan", "--sweep", "tiny", "--layers", "all", "--json").out)["data"]
    path.write_text(whole)
    assert left_out["points"] == json.loads(cadge("plan", "--sweep", "tiny", "--json").out)["data"]["points"]


def test_options_come_from_the_environment(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout
    assert runner
    monkeypatch.setenv("SWEEP", "tiny")
    monkeypatch.setenv("LAYERS", "a-one b-two")
    monkeypatch.setenv("INVENTORY", "")
    data = json.loads(cadge("plan", "--json").out)["data"]
    assert {entry["layer"] for entry in data["refused"]} <= {"floor-cacheline", "floor-xdp"}


def test_tracebacks_go_after_a_week(cadge: Cadge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, young, other = (tmp_path / f"{name}.txt" for name in ("cadge-traceback-a", "cadge-traceback-b", "c"))
    for path, days in ((old, 7.1), (young, 6.9), (other, 30)):
        path.write_text("x")
        os.utime(path, (time.time() - days * 86400,) * 2)
    (tmp_path / "cadge-traceback-folder.txt").mkdir()

    def broken(*_args: object, **_named: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr(cli.cadge, "main", broken)
    assert cadge("layers").code == 70
    assert not old.exists()
    assert young.exists()
    assert other.exists()


def test_bugs_end_with_70_and_a_traceback(cadge: Cadge, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_named: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr(cli.cadge, "main", broken)
    answer = cadge("layers")
    assert answer.code == 70
    path = Path(answer.err.rsplit("traceback in ", 1)[1].strip())
    assert "RuntimeError: oh" in path.read_text()
    path.unlink()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interruption_ends_with_130(cadge: Cadge, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def stopped(*_args: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(cli.cadge, "main", stopped)
    assert cadge("layers").code == 130


@pytest.mark.parametrize("locale", ["tr_TR.UTF-8", "C", "POSIX"])
@pytest.mark.first(1)
def test_the_locale_changes_nothing(locale: str, checkout: Checkout) -> None:
    environment = {**os.environ, "LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    sweep = checkout.sweeps / "tiny.yml"
    sweep.write_text(sweep.read_text().replace("title: tiny", "title: İıÇ Iİ 8 µs"), encoding="utf-8")
    argv = [sys.executable, "-m", "cadge_cli.cli"]
    plan = [*argv, "plan", "--sweep", "tiny", "--testbed", "local", "--layers", "a-one", "--json"]
    done = subprocess.run(plan, capture_output=True, check=False, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode("ascii"))["ok"]
    wrong = [*argv, "plan", "--sweep", "İı"]
    done = subprocess.run(wrong, capture_output=True, check=False, timeout=60, env=environment)
    assert done.returncode == 2, done.stderr


@pytest.mark.parametrize(("value", "warned"), [("1", True), ("0", False), (None, False)])
def test_doctor_says_that_sessions_may_starve_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None, warned: bool
) -> None:
    file = tmp_path / "sched_autogroup_enabled"
    if value is not None:
        file.write_text(f"{value}\n")
    monkeypatch.setattr(findings, "AUTOGROUP", file)
    found = [finding for finding in findings._noise() if finding.code == "D51"]
    assert [(finding.level, "--tune" in finding.fix) for finding in found] == [("warn", True)] * warned


@pytest.mark.parametrize(
    ("load_above", "used_above", "kind", "warned"),
    [
        (0.0, 9.0, "local", False),
        (0.1, 0.0, "local", False),  # a build has just ended
        (0.1, 0.01, "local", True),
        (9.0, 9.0, "cluster", False),
    ],
)
def test_a_sweep_warns_where_the_doctor_would(
    monkeypatch: pytest.MonkeyPatch, load_above: float, used_above: float, kind: str, warned: bool
) -> None:
    limit = findings.BUSY_LOAD_PER_CORE * len(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "getloadavg", lambda: (limit + 0.5 + load_above, 0.0, 0.0))
    monkeypatch.setattr(findings, "cores_used", lambda: limit + used_above)
    [doctor] = [finding for finding in findings._noise() if finding.code == "D50"]
    assert doctor.level == ("warn" if load_above and used_above else "ok")
    output = Output(stderr=None)
    commands_run._say_of(replace(testbeds.local(), kind=kind), output)
    assert [text.startswith(doctor.text) for text in output.problems] == [True] * warned


@pytest.mark.parametrize(("free_bytes", "warned"), [(64 << 20, True), (256 << 20, False)])
def test_little_shared_memory_is_said(free_bytes: int, warned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container has 64 MB of /dev/shm unless it is told otherwise."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_bytes))
    monkeypatch.setattr(commands_run, "busy", lambda: "")
    said = [one for one in findings._machine() if one.code == "D42"]
    assert [one.text.partition(" MB ")[0] for one in said] == ["/dev/shm has 67"] * warned
    output = Output(stderr=None)
    commands_run._say_of(testbeds.local(), output)
    assert output.problems == [f"{one.text}: {one.fix}" for one in said]


def test_doctor_says_how_a_container_gets_more_locked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings.resource, "getrlimit", lambda _: (8 << 20, 8 << 20))
    [limit] = [one for one in findings._machine() if one.code == "D41"]
    assert "8192 KiB" in limit.text
    assert "--ulimit memlock=-1" in limit.fix


def test_doctor_looks_where_campaigns_go(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path / "closed")
    (tmp_path / "closed").mkdir()
    for results, said in ((tmp_path / "closed/results", ["D13"]), (tmp_path / "results", [])):
        found = findings.look_at_controller(checkout, results)
        assert [one.code for one in found if one.code == "D13"] == said


def test_how_busy_processors_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Idle time and waiting for disks do not count, stolen time does; nor do others' processors and guests twice."""
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu 9 9 9 9\ncpu0 100 0 100 100 100 0 0 0 50 0\ncpu1 9 9 9 9 9 9 9 9 9 9\ncpu2 0 0 0 0 0 0 0 0 0 0\n"
    )

    def sleep(_seconds: float) -> None:
        stat.write_text(
            "cpu 9 9 9 9\ncpu0 110 1 102 110 105 1 1 0 60 0\n"
            "cpu1 99 9 9 9 9 9 9 9 9 9\ncpu2 0 0 0 15 5 0 0 10 0 0\nintr 5\n"
        )

    monkeypatch.setattr(findings, "PROC_STAT", stat)
    monkeypatch.setattr(findings.time, "sleep", sleep)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 2})
    assert findings.cores_used() == pytest.approx(2 * (15 + 10) / 60)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 0.0, 0.0))
    for text in (None, "cpu 1 2 3 4\n"):
        stat.unlink(missing_ok=True)
        if text is not None:
            stat.write_text(text)
        monkeypatch.setattr(findings.time, "sleep", lambda _seconds: None)
        assert findings.cores_used() == 1.5


def test_doctor_says_which_programs_patterns_lack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "made-up"
    pattern = WORKLOADS.patterns["rpc"].to_object()
    pattern["programs"] = [{"when": {"touch": "none"}, "program": program.name, "package": "made-up-tools"}]
    workloads = replace(WORKLOADS, patterns={"rpc": PatternFile.from_object(pattern, source="rpc")})
    monkeypatch.setattr(findings, "SYSTEM_PATH", str(tmp_path))
    [missing] = findings._outside_programs(findings.programs_of(workloads))
    assert (missing.code, missing.level) == ("D16", "skip")
    assert missing.text == "made-up is missing: rpc with touch: none is refused"
    assert "made-up-tools" in missing.fix
    program.touch(0o755)
    [there] = findings._outside_programs(findings.programs_of(workloads))
    assert (there.level, there.text) == ("ok", f"made-up: {program}, for rpc with touch: none")


def test_a_build_for_a_newer_libc_says_so(checkout: Checkout, cadge: Cadge) -> None:
    names = ("GLIBC_2.9", "GLIBC_2.34")
    lines = "".join(f"echo 'cadge-driver: libc.so.6: version `{name}'\\'' not found' >&2\n" for name in names)
    checkout.driver.write_text(f"#!/bin/sh\n{lines}exit 1\n")
    needs = "cadge-driver does not run here: it needs GLIBC_2.34, and this machine has glibc 2."
    for words in (("run", "--sweep", "tiny"), ("doctor",)):
        answer = cadge(*words)
        assert answer.code == 3
        assert needs in answer.out + answer.err


def test_doctor_names_a_missing_library_once(checkout: Checkout) -> None:
    trouble = "layer 'x' cannot be loaded: libfoo.so.1: cannot open shared object file: No such file or directory"
    known = read_catalogue(checkout)
    layers = [replace(info, description=Description(trouble=trouble)) for info in known.layers if info.absent is None]
    [lacks] = [one for one in findings._layers(checkout, replace(known, layers=tuple(layers))) if one.code == "D23"]
    assert (lacks.level, lacks.text) == ("warn", "a-one, b-two cannot run here: libfoo.so.1 is not on this machine")


def test_the_revision_of_a_release_is_in_its_file(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)  # a repository around it says nothing of it
    for said, expected in (("0123abcd", ("0123abcd", False)), ("0123abcd-dirty", ("0123abcd", True))):
        (tmp_path / "REVISION").write_text(f"{said}\n")
        assert revision_of(tmp_path) == expected


def test_doctor(checkout: Checkout, cadge: Cadge) -> None:
    answer = cadge("doctor", "--json")
    found = json.loads(answer.out)["data"]["findings"]
    assert all({"code", "level", "text", "fix"} == set(finding) for finding in found)
    assert answer.code == 0, answer.out
    assert ("D15", "ok") in {(finding["code"], finding["level"]) for finding in found}
    checkout.driver.unlink()
    answer = cadge("doctor")
    assert answer.code == 3
    assert "fix: make build" in answer.out


def stale(answer: str, **changes: object) -> list[str]:
    raw = json.loads(answer)
    return list(differences({**raw, **changes}, WORKLOADS))


def test_a_stale_driver_is_found(checkout: Checkout, cadge: Cadge) -> None:
    answer = driver_patterns()
    assert stale(answer) == []
    patterns = json.loads(answer)["patterns"]
    rpc = patterns["rpc"]
    assert stale(answer, patterns={**patterns, "rpc": patterns["stream"]}) == [
        "rpc has other parameters, quantities or needs in the driver than in its file"
    ]
    assert stale(answer, patterns={**patterns, "rpc": {**rpc, "roles": ["client"]}}) == [
        "rpc has roles client in the driver and client, server in its file"
    ]
    assert stale(answer, patterns={**patterns, "gather": rpc}) == ["the driver has a pattern gather that has no file"]
    assert "the driver has no form exchange" in stale(answer, forms={})
    assert any("no floor floor-tcp" in text for text in stale(answer, floors={}))
    assert "the driver has a reason PORT_TAKEN that has no file" in stale(answer, reasons=["PORT_TAKEN"])
    shutil.rmtree(checkout.root / "harness/patterns/stream")
    said = cadge("doctor")
    assert said.code == 3
    assert "the build is stale: the driver has a pattern stream that has no file   fix: make build" in said.out
    for command in (("run", "--sweep", "tiny"), ("patterns", "--check")):
        said = cadge(*command)
        assert (said.code, said.out) == (3, "")
        assert "the build is stale: the driver has a pattern stream that has no file" in said.err
        assert "make build" in said.err
    checkout.driver.write_text("#!/bin/sh\nexit 2\n")
    assert "cadge-driver does not list its patterns" in cadge("doctor").out


def test_the_built_driver_has_these_patterns() -> None:
    driver = Path(os.environ.get("CADGE_BUILD") or ROOT / "build") / "bin/cadge-driver"
    if not driver.is_file():
        pytest.skip(f"{driver} is not built")
    said = ask_driver(driver)
    assert not isinstance(said, str), said
    assert list(differences(said, WORKLOADS)) == []


def test_patterns(checkout: Checkout, cadge: Cadge) -> None:
    assert checkout
    listed = cadge("patterns")
    assert listed.code == 0
    for name, file in WORKLOADS.patterns.items():
        assert any(line.split()[0] == name and file.title in line for line in listed.out.splitlines())
        page = cadge("patterns", name)
        text = " ".join(page.out.split())
        assert page.code == 0
        for part in (file.summary, file.measures.clock, file.measures.side, *file.parameters, *file.quantities):
            assert " ".join(part.split()) in text
    data = json.loads(cadge("patterns", "rpc", "--json").out)["data"]
    assert data["pattern"]["parameters"]["depth"]["max"] == 4096
    assert list(json.loads(cadge("patterns", "--json").out)["data"]["patterns"]) == list(WORKLOADS.ordered)
    assert "measures where ways is both, else serves" in cadge("patterns", "stream").out
    wrong = cadge("patterns", "rpx")
    assert (wrong.code, wrong.out) == (2, "")
    assert "unknown pattern 'rpx'; did you mean rpc? For example: cadge patterns rpc" in wrong.err


def test_where_patterns_run(checkout: Checkout, cadge: Cadge) -> None:
    assert checkout
    said = cadge("patterns", "rpc", "--here", "--testbed", "local")
    assert said.code == 0
    assert said.out.startswith("rpc: runs in ")
    assert "[1] " in said.out
    assert "Counted: how many of 3 layers run" in said.out
    assert "refused: layer or pattern does not run at this place" in said.out
    cells = json.loads(cadge("patterns", "rpc", "--here", "--testbed", "local", "--json").out)["data"]["cells"]
    assert {cell["pattern"] for cell in cells} == {"rpc"}
    assert all(cell["runs"] or cell["why"] for cell in cells)
    between = [cell["why"] for cell in cells if cell["place"] == "between" and not cell["runs"]]
    assert ["testbed local has one host; place between needs two"] in between
    data = json.loads(cadge("patterns", "--here", "--testbed", "local", "--json").out)["data"]
    everything = data["cells"]
    assert {cell["pattern"] for cell in everything} == set(WORKLOADS.patterns)
    assert data["count"]["cells"] == len(everything) == sum(one["cells"] for one in data["counts"].values())
    assert data["count"]["run"] == sum(bool(cell["runs"]) for cell in everything)
    assert (
        data["count"]["refused"] == sum(data["count"]["by_reason"].values()) == sum(not c["runs"] for c in everything)
    )
    assert all(len(cell["codes"]) == len(cell["why"]) for cell in everything)


def test_a_plan_names_hosts_and_roles(checkout: Checkout, cadge: Cadge, runner: object) -> None:
    assert checkout
    assert runner
    answer = cadge("plan", "--sweep", "tiny")
    assert answer.code == 0, answer.err
    assert "b1     within   client, server on h1" in answer.out
    assert "b2     between  client on h1; server on h2" in answer.out
    (within, between) = json.loads(cadge("plan", "--sweep", "tiny", "--json").out)["data"]["blocks"]
    assert (within["hosts"], between["hosts"]) == (["h1"], ["h1", "h2"])
    assert between["casts"] == ["client on h1; server on h2"]


def test_a_depth_beyond_the_limit_is_refused_when_planning(checkout: Checkout, cadge: Cadge, runner: object) -> None:
    assert runner
    sweep = checkout.sweeps / "tiny.yml"
    sweep.write_text(sweep.read_text().replace("request_bytes: sizes", "request_bytes: sizes, depth: 8192"))
    for command in ("plan", "run"):
        answer = cadge(command, "--sweep", "tiny")
        assert (answer.code, answer.out) == (2, "")
        assert "patterns.0.depth: 8192 is more than the maximum of 4096 operations" in answer.err
    assert not checkout.campaigns.exists()


def test_a_reader_that_goes_away_is_no_error(checkout: Checkout) -> None:
    assert checkout
    script = f"{sys.executable} -m cadge_cli.cli layers | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_of_results_is_meant_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ansible runs its tasks elsewhere."""
    given: list[Path | None] = []

    @click.command()
    @results_option
    def command(results: Path | None) -> None:
        given.append(results)

    monkeypatch.chdir(tmp_path)
    for arguments in (["--results", "mine"], []):
        command(arguments, standalone_mode=False)
    assert given == [tmp_path / "mine", None]
