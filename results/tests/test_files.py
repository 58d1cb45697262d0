# SPDX-License-Identifier: BSD-3-Clause
"""Outputs go where the user said: into devices and pipes as they are, along links, and else whole or not at all.

Nothing here names a device or a link of /dev: run by root, code with a fault would replace the machine's own.
"""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cadge_results import OutputError, own_descriptor, write_output

WRITE = (
    "import pathlib, sys; from cadge_results import write_output; write_output(pathlib.Path(sys.argv[1]), b'new\\n')"
)


@pytest.fixture
def umask() -> Iterator[int]:
    """A umask that nobody has by chance."""
    old = os.umask(0o037)
    yield 0o037
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_new_file_is_the_umasks_and_an_old_one_keeps_its_mode(tmp_path: Path, umask: int) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("before")
    old.chmod(0o604)
    for path in (new, old):
        written = write_output(path, b"12345")
        assert (written.size_bytes, written.streamed) == (5, False)
        assert path.read_bytes() == b"12345"
    assert (mode(new), mode(old)) == (0o666 & ~umask, 0o604)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")
def test_an_old_file_keeps_its_owner(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("before")
    os.chown(tmp_path / "theirs", 65534, 65534)
    write_output(tmp_path / "theirs", b"new")
    assert (tmp_path / "theirs").stat().st_uid == 65534


def test_a_link_stays_a_link_and_its_target_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere/target"
    target.write_text("before")
    reader = target.open()  # who reads the old one goes on reading the old one
    (tmp_path / "link").symlink_to("elsewhere/target")
    (tmp_path / "link2").symlink_to("link")
    write_output(tmp_path / "link2", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "link2").is_symlink()
    assert target.read_text() == "after"
    assert reader.read() == "before"
    reader.close()


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_output(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "target").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    assert write_output(fifo, b"x" * 200_000).streamed
    reader.join(timeout=10)
    assert read == [b"x" * 200_000]
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


@pytest.mark.parametrize("name", ["/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "stdout"])
@pytest.mark.first(1)
def test_stdout_is_written_into_and_not_opened_anew(name: str, tmp_path: Path) -> None:
    if name == "stdout":  # as /dev/stdout is
        (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
        name = str(tmp_path / "stdout")
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as stream:
        subprocess.run([sys.executable, "-c", WRITE, name], stdout=stream, check=True, timeout=60)
    assert log.read_text() == "before\nnew\n"
    assert own_descriptor(Path(name)) == 1


def test_what_is_no_descriptor_of_ours(tmp_path: Path) -> None:
    (tmp_path / "fd").mkdir()
    (tmp_path / "round").symlink_to("round")
    for name in ("/proc/1/fd/1", str(tmp_path / "fd/1"), str(tmp_path / "round"), "fd/1"):
        assert own_descriptor(Path(name)) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "Is a directory"),
        ("no/file", "No such file or directory"),
        ("round", "Too many levels of symbolic links"),
        ("out", "No such file or directory"),
        ("/dev/fd/999", "Bad file descriptor"),
    ],
)
def test_what_cannot_be_written_is_said_and_leaves_nothing(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "out").symlink_to("no/file")
    with pytest.raises(OutputError, match=f"cannot write .*: {said}"):
        write_output(tmp_path / name, b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "round"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("before")
    signals = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
        for name in ("old", "new"):
            with pytest.raises(OutputError, match=f"cannot write .*{name}: File too large"):
                write_output(tmp_path / name, b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, signals)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "before"


def test_a_file_that_may_not_be_written_stays(tmp_path: Path) -> None:
    """The folder is writable, so that a file could be put in its place: it is not."""
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "old").write_text("before")
    (folder / "old").chmod(0o444)
    as_user: list[str] = []
    if os.geteuid() == 0:
        as_user = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"]  # root without its powers owns it still
    argv = [*as_user, sys.executable, "-c", WRITE, str(folder / "old")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert "OutputError: cannot write" in done.stderr
    assert "Permission denied" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["old"]
    assert (folder / "old").read_text() == "before"


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_output(path, b"1")
    assert path.read_bytes() == b"1"


def test_nothing_that_others_put_beside_it_is_followed(tmp_path: Path) -> None:
    """In a folder that everybody may write, a scratch file with a known name would be a trap."""
    (tmp_path / "precious").write_text("precious")
    for name in (".out.part", "out.part"):
        (tmp_path / name).symlink_to("precious")
    write_output(tmp_path / "out", b"new")
    assert (tmp_path / "precious").read_text() == "precious"
