# SPDX-License-Identifier: BSD-3-Clause
"""One sweep at a time on a machine, and no user who can keep the others from measuring, or speak through our mouth."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadge_harness.errors import UnfitError
from cadge_harness.paths import Checkout
from cadge_harness.run import machine_lock
from cadge_harness.testbed import testbeds
from cadge_harness.testbed.model import Testbed
from cadge_results import Store

from .conftest import Answer, FakeRunner, make_testbed

Cadge = Callable[..., Answer]
RUN = ("run", "--sweep", "tiny", "--no-report")
NOBODY = pwd.getpwnam("nobody").pw_uid
needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="to be two users takes root")
# The program begins with what a terminal would take for a new title. argv: the user to become.
AS_USER = """#\x1b]0;evil\x07
import os, socket, sys, threading
from cadge_harness.run import machine_lock
uid = int(sys.argv[1])
if uid != os.geteuid():
    os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
"""
SWEEP = """
with machine_lock.machine_lock("again", lambda text: print(text, flush=True)):
    print("held", flush=True)
    sys.stdin.read()
"""
SQUAT = """
lock = socket.socket(socket.AF_UNIX)
lock.bind(machine_lock.lock_name())
"""
HELD = "print('held', flush=True); sys.stdin.read()\n"
SQUATTERS = {
    "listens": SQUAT + "lock.listen(64)\n" + HELD,
    "does not listen": SQUAT + HELD,
    "has a full queue": SQUAT
    + """
lock.listen(0)
mine = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for one in mine:
    one.setblocking(False)
    try: one.connect(machine_lock.lock_name())
    except OSError: pass
"""
    + HELD,
    "hangs up": SQUAT
    + """
lock.listen(64)
def hang_up():
    while True: lock.accept()[0].close()
threading.Thread(target=hang_up, daemon=True).start()
"""
    + HELD,
}


class Other:
    """Another process, which holds the lock until its input ends."""

    def __init__(self, code: str, uid: int) -> None:
        argv = [sys.executable, "-c", AS_USER + code, str(uid)]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout
        return self.process.stdout.readline()

    def end(self) -> None:
        """End it in order."""
        self.process.communicate(timeout=20)


@contextlib.contextmanager
def other(code: str, uid: int | None = None) -> Iterator[Other]:
    made = Other(code, os.geteuid() if uid is None else uid)
    try:
        yield made
    finally:
        made.process.kill()
        made.end()


@pytest.fixture
def quiet(checkout: Checkout, runner: FakeRunner) -> Checkout:
    """A checkout on which `run` would work."""
    assert runner
    return checkout


def printable(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@needs_two_users
@pytest.mark.parametrize(("first", "second"), [(0, NOBODY), (NOBODY, 0), (NOBODY, NOBODY), (0, 0)])
@pytest.mark.first(2)
def test_two_sweeps_exclude_each_other(checkout: Checkout, first: int, second: int) -> None:
    assert checkout
    name = pwd.getpwuid(first).pw_name
    with other(SWEEP, first) as one:
        assert one.line() == "held\n"
        with other(SWEEP, second) as two:
            told = two.line()
            assert told.startswith(
                f"another sweep measures on this machine (process {one.process.pid} of user {name}: "
            )
            assert printable(told)
            assert "evil" in told
            assert ("at most" in told) is (first == NOBODY and second == 0)
            os.set_blocking(two.process.stdout.fileno(), False)  # type: ignore[union-attr]
            time.sleep(0.7)
            assert two.line() == ""
            os.set_blocking(two.process.stdout.fileno(), True)  # type: ignore[union-attr]
            one.end()
            assert two.line() == "held\n"


def test_never_two_at_once(checkout: Checkout, tmp_path: Path) -> None:
    """Five that want it at the same time, two of them killed while they have it."""
    assert checkout
    work = f"""
for turn in range(3):
    with machine_lock.machine_lock("again", lambda text: None):
        os.mkdir({str(tmp_path / "inside")!r})
        os.rmdir({str(tmp_path / "inside")!r})
        if sys.argv[2] == "die": os.kill(os.getpid(), 9)
"""
    argv = [sys.executable, "-c", AS_USER + work, str(os.geteuid())]
    processes = [subprocess.Popen([*argv, end]) for end in ("die", "die", "live", "live", "live")]
    for process in processes:
        process.wait(timeout=60)
    assert [process.returncode for process in processes] == [-signal.SIGKILL] * 2 + [0] * 3


@needs_two_users
@pytest.mark.parametrize("how", SQUATTERS)
@pytest.mark.first(1)
def test_another_user_cannot_keep_us_from_measuring(
    how: str, quiet: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_lock, "FOREIGN_WAIT_S", 1.0)
    with other(SQUATTERS[how], NOBODY) as squatter:
        assert squatter.line() == "held\n"
        begun_s = time.monotonic()
        answer = cadge(*RUN)
        assert (answer.code, answer.out) == (3, "")
        assert 1 <= time.monotonic() - begun_s < 15
        unknown = "an unknown process"
        who = f"process {squatter.process.pid} of user nobody" if how in {"listens", "hangs up"} else unknown
        assert f"cadge: another user has kept this machine for 1 s ({who}" in answer.err
        assert answer.err.endswith("  cadge run --sweep tiny --no-report --no-queue\n")
        assert printable(answer.err)
        assert answer.err.count("another sweep measures on this machine") == 1
        assert list(quiet.campaigns.glob("*")) == []
        answer = cadge(*RUN, "--no-queue")
        assert answer.code == 0, answer.err
        problem = f"another sweep measured on this machine at the same time ({who})"
        assert problem in answer.err
        assert problem in Store(quiet.campaigns).open("last").meta.problems


BESIDE = """
with machine_lock.machine_lock("again", lambda text: None, queue=False) as turn:
    print(turn.number, *(one.pid for one in turn.before), flush=True)
    sys.stdin.readline()
    print(*sorted(one.pid for one in turn.beside()), flush=True)
    sys.stdin.read()
"""


def beside_of(sweep: Other) -> list[int]:
    """Ask a sweep that runs BESIDE, once, who has measured beside it."""
    assert sweep.process.stdin
    sweep.process.stdin.write("\n")
    sweep.process.stdin.flush()
    return [int(word) for word in sweep.line().split()]


def test_sweeps_that_overlap_know_it_of_each_other(checkout: Checkout) -> None:
    """Also of one that has ended, and of those whose number was lower and is free again; who only waits is no sweep."""
    assert checkout
    with other(BESIDE) as one, other(BESIDE) as two_or_one:
        both = [one, two_or_one]
        first, second = sorted(both, key=lambda sweep: (line := sweep.line().split()) and int(line[0]))
        # only now: begun beside them, it might be the first
        with other(SWEEP) as waiting:
            assert waiting.line().startswith("another sweep measures")
            with other(BESIDE) as third:
                assert third.line().split() == ["2", str(first.process.pid), str(second.process.pid)]
                pids = [sweep.process.pid for sweep in (first, second, third)]
                assert beside_of(third) == sorted(pids[:2])
            assert beside_of(first) == sorted(pids[1:]), "it has ended, and measured all the same"
            first.end()
            assert waiting.line() == "held\n"
            with other(BESIDE) as late:
                assert late.line().split() == ["2", str(waiting.process.pid), str(second.process.pid)]
                assert beside_of(second) == sorted([pids[0], pids[2], waiting.process.pid, late.process.pid])


def test_more_sweeps_than_there_are_numbers(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkout
    monkeypatch.setattr(machine_lock, "SWEEPS_MOST", 2)
    with other(SWEEP) as holder:
        assert holder.line() == "held\n"
        with machine_lock.machine_lock("again", lambda _text: None, queue=False) as turn:
            assert turn.number == 1
            full = machine_lock.machine_lock("again", lambda _text: None, queue=False)
            with pytest.raises(UnfitError, match="2 sweeps measure on this machine"), full:
                pass


def test_nobody_is_blamed_where_nobody_measures(quiet: Checkout, cadge: Cadge) -> None:
    assert cadge(*RUN, "--no-queue").code == 0
    assert Store(quiet.campaigns).open("last").meta.problems == ()


def test_a_sweep_of_ones_own_is_waited_for(
    checkout: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout
    monkeypatch.setattr(machine_lock, "FOREIGN_WAIT_S", 0.0)
    with other(SWEEP) as holder:
        assert holder.line() == "held\n"
        release = threading.Timer(1.2, holder.end)
        release.start()
        begun_s = time.monotonic()
        answer = cadge(*RUN)
        release.join()
    assert answer.code == 0
    assert time.monotonic() - begun_s > 1
    assert "another sweep measures on this machine" in answer.err
    assert runner.made


def test_waiting_can_be_ended(checkout: Checkout) -> None:
    assert checkout
    with other(SWEEP) as holder:
        assert holder.line() == "held\n"
        told: list[str] = []
        locked = machine_lock.machine_lock("again", told.append, should_stop=lambda: bool(told))
        with pytest.raises(KeyboardInterrupt), locked:
            pass


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["held", "fifo", "folder", "link", "closed"])
@pytest.mark.first(2)
def test_what_lies_where_the_lock_was_is_left_alone(
    kind: str, quiet: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A lock in a folder that everybody may write was another user's to hold, to fill and to replace."""
    assert quiet
    path, precious = tmp_path / "cadge.lock", tmp_path / "precious"
    monkeypatch.setenv("CADGE_LOCK", str(path))
    precious.write_text("precious")
    with contextlib.ExitStack() as stack:
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to(precious)
        else:
            path.write_text("\x1b]0;evil\x07")
            held = stack.enter_context(path.open())
            path.chmod(0o600 if kind == "closed" else 0o666)
            if kind == "held":
                fcntl.flock(held, fcntl.LOCK_EX)
        before = path.lstat()
        answer = cadge(*RUN)
    assert answer.code == 0, answer.err
    assert printable(answer.err)
    assert path.lstat() == before
    assert precious.read_text() == "precious"


def test_a_kernel_without_such_names(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkout
    monkeypatch.setattr(machine_lock, "lock_name", lambda _number: b"/no/such/folder/lock")
    locked = machine_lock.machine_lock("again", lambda _text: None)
    with pytest.raises(UnfitError, match="the lock of this machine cannot be taken: No such file"), locked:
        pass


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--testbed", "lokal"), 2, "there is no testbed 'lokal'"),
        (("--inventory", "/no/such/inventory.yml"), 2, "/no/such/inventory.yml"),
        (("--layers", "c-three"), 5, "c-three"),
        (("--selftest", "20261121T013042Z-00000000"), 5, "20261121T013042Z-00000000"),
        (("--results", "/proc/campaigns"), 3, "cannot write /proc/campaigns"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anybody_is_waited_for(
    more: tuple[str, str], code: int, said: str, checkout: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout
    if more[0] not in {"--testbed", "--inventory"}:
        monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed())
    with other(SWEEP) as holder:
        assert holder.line() == "held\n"
        answer = cadge(*RUN, *more)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert "waiting" not in answer.err


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "words",
    [
        ("run", "--sweep", "no-such"),
        ("run", "--sweep", "tiny", "--sizes", "8"),
        ("run", "--sweep", "tiny", "--patterns", "no-such"),
        ("run", "--sweep", "tiny", "--budget", "1s"),
        ("run", "--sweep", "tiny", "--trace", "/no/such/log"),
        ("resume", "no-such"),
        ("resume", "--results", "/proc/campaigns"),
        ("quick", "no-such"),
        ("crosscheck", "--layers", "no-such"),
        ("crosscheck", "--sizes", "8"),
        ("crosscheck", "--threshold", "x"),
        ("crosscheck", "--inventory", "/no/such.yml"),
        ("selftest", "--only", "no-such"),
        ("selftest", "--only", "stall", "--results", "/proc/campaigns"),
        ("selftest", "--only", "stall", "--testbed", "lokal"),
        ("plan", "--pilot", "--sweep", "tiny"),
        ("plan", "--pilot", "--sweep", "no-such"),
    ],
)
def test_no_command_waits_with_wrong_arguments(words: tuple[str, ...], checkout: Checkout, cadge: Cadge) -> None:
    assert checkout
    with other(SWEEP) as holder:
        assert holder.line() == "held\n"
        answer = cadge(*words)
    assert answer.code in {2, 3, 5}
    assert "waiting" not in answer.err


@pytest.mark.timeout(60)
def test_a_resume_on_other_hosts_is_refused_before_anybody_is_waited_for(
    quiet: Checkout, cadge: Cadge, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quiet
    runner.stop_after = 1
    assert cadge(*RUN).code == 6
    monkeypatch.setattr(testbeds, "resolve", lambda *_args, **_named: make_testbed(hosts=1))
    with other(SWEEP) as holder:
        assert holder.line() == "held\n"
        answer = cadge("resume")
    assert (answer.code, answer.out) == (2, "")
    assert "waiting" not in answer.err


def test_a_sweep_beside_another_asks_for_a_testbed_of_its_own(
    quiet: Checkout, cadge: Cadge, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quiet
    asked: list[object] = []

    def resolve(*_args: object, **named: object) -> Testbed:
        asked.append(named["own"])
        return make_testbed()

    monkeypatch.setattr(testbeds, "resolve", resolve)
    assert cadge(*RUN, "--no-queue").code == 0
    with other(SWEEP) as holder:
        assert holder.line() == "held\n"
        assert cadge(*RUN, "--no-queue").code == 0
    assert asked == [False, True]
