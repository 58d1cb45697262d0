# SPDX-License-Identifier: BSD-3-Clause
"""The checksum file: what sha256sum writes and checks, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_results import FormatError
from cadge_results.store.checksum import Checksum, beside

NAMES = st.text(st.characters(exclude_characters="/\\\0\r\n", exclude_categories=["Cs"]), min_size=1)
LINE = Checksum.of(b"content", "b1-0000-0123abcd.json").line().encode()


@given(st.binary(), NAMES)
def test_what_is_written_is_read(content: bytes, name: str) -> None:
    made = Checksum.of(content, name)
    assert Checksum.parse(made.line().encode()) == made


@given(st.binary() | st.from_regex(rb"[0-9a-f]{60,66} [ *][^\n]*\n?", fullmatch=True))
def test_whatever_the_file_holds(content: bytes) -> None:
    """It is refused, or it is just what we would have written."""
    try:
        found = Checksum.parse(content)
    except FormatError:
        return
    assert found.line().encode() == content


@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_no_flipped_bits_go_unseen(place: int, flip: int) -> None:
    damaged = bytearray(LINE)
    damaged[place] ^= flip
    try:
        assert Checksum.parse(bytes(damaged)) != Checksum.parse(LINE)
    except FormatError:
        return


@given(st.integers(0, len(LINE) - 1))
def test_a_part_of_it_is_refused(end: int) -> None:
    with pytest.raises(FormatError, match="not a line of sha256sum"):
        Checksum.parse(LINE[:end])


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is missing")
def test_sha256sum_agrees(tmp_path: Path) -> None:
    path = tmp_path / "a-record.json"
    path.write_bytes(b"content\n")
    beside(path).write_text(Checksum.of(path.read_bytes(), path.name).line())
    argv = ["sha256sum", "--check", "--strict", beside(path).name]
    assert subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False, timeout=60).returncode == 0
    path.write_bytes(b"Content\n")
    assert subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False, timeout=60).returncode == 1
