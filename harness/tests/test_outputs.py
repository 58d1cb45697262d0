# SPDX-License-Identifier: BSD-3-Clause
"""Every output of every command: a device stays a device, a link a link, and what is said of it makes sense."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import click
import pytest

from cadge_cli import cli
from cadge_harness.paths import Checkout
from cadge_results import Store

from .conftest import Answer, FakeRunner
from .test_ablate import ablating
from .test_driver_run import DRIVER, launch, need, rpc
from .test_floors import Launch
from .test_floors import point as floor_point

pytestmark = pytest.mark.spare

__all__ = ["ablating"]  # a fixture
Cadge = Callable[..., Answer]
CADGE = (sys.executable, "-m", "cadge_cli.cli")
COMMANDS = {
    "export csv": (*CADGE, "export", "--format", "csv", "--output"),
    "report": (*CADGE, "report", "-o"),
    "export json": (*CADGE, "export", "--format", "json", "-o"),
    "study": (*CADGE, "study", "peregrine", "-o"),
    "plan": (*CADGE, "plan", "--sweep", "tiny", "--testbed", "local", "--write"),
}
STDOUT = "/proc/self/fd/1"
"""What /dev/stdout is a link to. Run by root, code with a fault would replace the machine's own."""
# A file system that nobody else sees, with a device of its own (like /dev/null, /dev/full): a fault can hurt no other.
PRIVATE = """
mount -t tmpfs -o mode=700 cadge-test "$0" && mknod "$0/node" c 1 "$1" || exit 77
shift
"$@"
code=$?
stat -c 'afterwards: %F %t:%T' "$0/node" >&2
ls -A "$0" >&2
exit $code
"""


def on_a_device(folder: Path, minor: int, argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a command with such a node as its last argument; it is as it was, and alone."""
    (folder / "private").mkdir()
    private = folder / "private"
    full = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", PRIVATE, str(private), str(minor)]
    done = subprocess.run(
        [*full, *argv, str(private / "node")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(f"no device can be made in a mount namespace here: {done.stderr}")
    assert done.stderr.endswith(f"afterwards: character special file 1:{minor}\nnode\n"), done.stderr
    return done


@pytest.fixture
def measured(ablating: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Checkout:
    """A checkout with a campaign."""
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setenv("CADGE_STATE", str(tmp_path / "state"))
    assert cadge("run", "--sweep", "ablate-a", "--no-report").code == 0
    return ablating


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device takes root")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.first(1)
def test_a_device_stays_a_device(command: str, measured: Checkout, tmp_path: Path) -> None:
    assert measured
    done = on_a_device(tmp_path, 3, COMMANDS[command])
    assert done.returncode == 0, done.stderr
    if command != "plan":  # it prints the plan besides
        assert done.stdout == ""
        assert " bytes written to " in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device takes root")
@pytest.mark.parametrize("command", ["report", "plan"])
@pytest.mark.first(1)
def test_a_device_without_room(command: str, measured: Checkout, tmp_path: Path) -> None:
    assert measured
    done = on_a_device(tmp_path, 7, COMMANDS[command])
    assert (done.returncode, done.stdout) == (3, "")
    assert "/node: No space left on device\n" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device takes root")
def test_a_device_for_the_result_of_a_driver(tmp_path: Path) -> None:
    need("null-self")
    path = tmp_path / "launch.json"
    path.write_text(json.dumps(launch("null-self", [rpc(duration=20)], place="self")))
    modules = str(DRIVER.parents[1] / "layers")
    argv = (str(DRIVER), "run", "--launch", str(path), "--endpoint", "0", "--modules", modules, "--out")
    done = on_a_device(tmp_path, 3, argv)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device takes root")
def test_a_device_for_the_result_of_a_floor(tmp_path: Path) -> None:
    need()
    made = Launch(folder=tmp_path, floor="floor-cacheline", points=[floor_point("exchange", 8)], deadline_ms=1000)
    made.write()
    files = ("--launch", str(tmp_path / "launch.json"), "--token-file", str(tmp_path / "token"))
    argv = (str(made.program), "run", *files, "--endpoint", "0", "--oob", made.oob, "--out")
    done = on_a_device(tmp_path, 3, argv)  # nobody is at the other end, which is a result as well
    assert "endpoint 0:" in done.stderr


@pytest.mark.parametrize(
    "how", ["link", "link to nothing", "kept mode", "stdout", "link to stdout", "folder", "no folder"]
)
def test_where_the_result_of_a_driver_goes(how: str, tmp_path: Path) -> None:
    need("null-self")
    path, out = tmp_path / "launch.json", tmp_path / "out"
    path.write_text(json.dumps(launch("null-self", [rpc(duration=20)], place="self")))
    result = tmp_path / "result.json"
    if how != "link to nothing":
        result.write_text("before\n")
        result.chmod(0o640)
    if how == "folder":
        out.mkdir()
    elif how.startswith("link"):
        out.symlink_to(STDOUT if how == "link to stdout" else "result.json")
    named = {"kept mode": str(result), "stdout": STDOUT, "no folder": str(out / "no")}.get(how, str(out))
    modules = str(DRIVER.parents[1] / "layers")
    argv = [DRIVER, "run", "--launch", path, "--endpoint", "0", "--modules", modules, "--out", named]
    before = {item.name for item in tmp_path.iterdir()}
    streamed = how in {"stdout", "link to stdout"}
    with (result if streamed else Path(os.devnull)).open("a") as stdout:
        done = subprocess.run(argv, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert {item.name for item in tmp_path.iterdir()} - before == (
        {"result.json"} if how == "link to nothing" else set()
    )
    if how in {"folder", "no folder"}:
        assert done.returncode == 2
        assert f"--out {named}: " in done.stderr
        return
    assert done.returncode == 0, done.stderr
    text = result.read_text()
    assert json.loads(text.removeprefix("before\n"))["status"] == "done"
    assert text.startswith("before\n") is streamed
    assert out.is_symlink() is how.startswith("link")
    if how != "link to nothing":
        assert result.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("command", ["report", "export csv", "study"])
@pytest.mark.long
def test_stdout_as_the_output_holds_it_alone(command: str, measured: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    assert measured
    (tmp_path / "stdout").symlink_to(STDOUT)
    assert str(tmp_path / "file") in cadge(*COMMANDS[command][3:], str(tmp_path / "file")).out
    done = subprocess.run([*COMMANDS[command], str(tmp_path / "stdout")], capture_output=True, text=True, check=True)
    assert done.stdout == (tmp_path / "file").read_text()
    # a study says before that that it has nothing of this campaign
    assert done.stderr.endswith(f"{len(done.stdout.encode())} bytes written to {tmp_path / 'stdout'}\n")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.first(1)
def test_stdout_cannot_hold_the_answer_as_well(command: str, measured: Checkout, cadge: Cadge) -> None:
    assert measured
    answer = cadge(*COMMANDS[command][3:], STDOUT, "--json")
    assert (answer.code, json.loads(answer.out)["ok"]) == (2, False)
    assert "--json answers on stdout" in answer.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.first(1)
def test_an_output_that_cannot_be_is_refused(
    command: str, measured: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path
) -> None:
    assert runner
    before = sorted(tmp_path.rglob("*"))
    folder = f"folder {tmp_path / 'no'} does not exist"
    for path, said in ((tmp_path, "it is a directory"), (tmp_path / "no/file", folder)):
        answer = cadge(*COMMANDS[command][3:], str(path))
        assert (answer.code, answer.out) == (3, "")
        assert said in answer.err
        assert "Traceback" not in answer.err
    assert sorted(tmp_path.rglob("*")) == before
    assert len(Store(measured.campaigns).campaigns()) == 1


OUTPUTS: dict[str, tuple[str, ...]] = {
    "report": ("report",),
    "export": ("export",),
    "compare": ("compare", "last:a-one", "last:a-one (off=x)"),
    "query": ("query", "SELECT 1 AS a"),
    "plan": ("plan", "--sweep", "tiny", "--testbed", "local"),
    "report text": ("report", "--format", "text"),
    "report markdown": ("report", "--format", "markdown"),
    "export json": ("export", "--format", "json"),
    "compare cell": ("compare", "last:a-one", "last:a-one (off=x)", "--point", "8 B"),
    "compare html": ("compare", "last:a-one", "last:a-one (off=x)", "--format", "html"),
    "history": ("history",),
    "study": ("study", "peregrine"),
    "figures": ("export", "--format", "svg"),
}


def output_option(command: str) -> str | None:
    """Return the option by which a command is told where its output goes."""
    found = cli.command_of(command)
    assert found is not None
    named = (one.opts[0] for one in found.params if one.name in {"out", "target"} and isinstance(one, click.Option))
    return next(named, None)


def test_every_command_with_an_output_is_here() -> None:
    having = {name for name in cli.COMMANDS if output_option(name)}
    # ab measures two builds first, and test_ab.py has its output; publish fills a folder
    assert having - {"ab", "publish"} == {argv[0] for argv in OUTPUTS.values()}


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.first(5)
def test_an_output_that_cannot_be_written_is_3(
    name: str, measured: Checkout, cadge: Cadge, runner: FakeRunner, tmp_path: Path
) -> None:
    """A missing folder, one that is a file, no room, nobody who reads; `-` is stdout."""
    assert runner
    if name == "history":
        assert cadge("run", "--sweep", "ablate-a", "--seed", "2", "--no-report").code == 0
    argv = OUTPUTS[name]
    option = output_option(argv[0])
    assert option is not None
    missing, inside = tmp_path / "no" / "file", Path(__file__) / "file"
    for path in (missing, inside, *(() if name == "figures" else (tmp_path, Path("/dev/full")))):
        answer = cadge(*argv, option, str(path))
        assert answer.code == 3, (path, answer)
        assert answer.err.startswith("cadge: cannot write ") or f"\ncadge: cannot write {path}" in answer.err, (
            answer.err
        )
        assert measured.campaigns.is_dir()
    if name == "figures":
        return
    reading, writing = os.pipe()
    os.close(reading)
    assert cadge(*argv, option, f"/dev/fd/{writing}").code == 3
    os.close(writing)
    whole = tmp_path / "whole"
    assert cadge(*argv, option, str(whole)).code == 0
    done = subprocess.run([*CADGE, *argv, option, "-"], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    if name != "plan":  # it is made for the processors that are free now
        assert whole.read_bytes() in done.stdout
    assert not Path("-").exists()


def test_the_export_on_stdout_is_the_file(measured: Checkout, cadge: Cadge, tmp_path: Path) -> None:
    assert measured
    assert cadge("export", "-o", str(tmp_path / "file")).out == f"{tmp_path / 'file'}\n"
    assert cadge("export").out == (tmp_path / "file").read_text()


SAYING = {
    "help": ("--help",),
    "help of a command": ("plan", "--help"),
    "version": ("--version",),
    "layers": ("layers",),
    "layers, for programs": ("layers", "--json"),
    "plan": ("plan", "--sweep", "tiny", "--testbed", "local"),
    "export": ("export",),
    "a mistake": ("layers", "--jsn"),
    "a mistake, for programs": ("nothing", "--json"),
}


WHOLE = ("help", "layers, for programs", "a mistake, for programs")
HOW, STREAMS = ("closed", "full", "gone"), ("stdout", "stderr", "both")
ALL_WAYS = [
    pytest.param(what, how, stream, marks=[pytest.mark.long] * (what == WHOLE[1] and HOW.index(how) != place))
    for what, how, (place, stream) in product(WHOLE, HOW, enumerate(STREAMS))
]
"""The dear one has each way and each stream once in the short form."""


@pytest.mark.parametrize(
    ("what", "how", "stream"),
    [*ALL_WAYS, *((what, how, "stdout") for what in SAYING if what not in WHOLE for how in ("full", "gone"))],
)
@pytest.mark.first(4)
def test_nobody_can_have_the_answer(what: str, how: str, stream: str, measured: Checkout, tmp_path: Path) -> None:
    """Exit code 3, or a quiet end: what went wrong is said where somebody can read it, and there is no traceback."""
    assert measured
    numbers = {"stdout": "1", "stderr": "2", "both": "1 2"}[stream].split()
    shell = {"closed": ">&-", "full": ">/dev/full", "gone": f">{tmp_path / 'pipe'}"}[how]
    script = f'exec "$@" {" ".join(number + shell for number in numbers)}'
    reader = None
    if how == "gone":
        os.mkfifo(tmp_path / "pipe")
        reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        script = f'exec {" ".join(f"{number}{shell}" for number in numbers)}; kill -STOP $$; exec "$@"'
    program = subprocess.Popen(
        ["sh", "-c", script, "sh", *CADGE, *SAYING[what]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    if reader is not None:  # it has opened the pipe, and will find that nobody reads it
        os.waitpid(program.pid, os.WUNTRACED)
        os.close(reader)
        os.kill(program.pid, signal.SIGCONT)
    out, err = program.communicate(timeout=60)
    mistaken = what.startswith("a mistake")
    answers = not mistaken or "--json" in SAYING[what]
    lost = answers and stream != "stderr" and how != "gone"
    helped = how == "closed" and what in {"help", "help of a command", "version"}  # click says nothing of it
    assert program.returncode == (3 if lost and not helped else 2 if mistaken else 0), err
    assert not [*tmp_path.glob("cadge-traceback-*")]
    assert "Traceback" not in out + err
    assert "Exception ignored" not in err
    if stream == "stdout" and lost and not helped:
        assert "cadge: cannot write the answer to stdout: " + ("it is" if how == "closed" else "No space") in err
    elif not mistaken:
        assert err == ""
