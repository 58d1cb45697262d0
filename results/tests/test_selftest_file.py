# SPDX-License-Identifier: BSD-3-Clause
"""Self-tests as they are stored: which one counts, and of which machine it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cadge_results import FormatError, NodeFacts, NotFoundError, SelftestFile, SelftestPart
from cadge_results.formats.selftest import (
    machine_of,
    newest_selftest,
    overall,
    put_selftest,
    read_selftest,
    selftest_file,
)

BUILD, OTHER = "a" * 64, "b" * 64


def node(host: str, **facts: object) -> NodeFacts:
    return NodeFacts.from_object({"schema": "cadge.node/1", "host": host, **facts}, source=host)


def made(hour: int, build: str = BUILD) -> SelftestFile:
    part = SelftestPart(name="stall", verdict="passed", says="4 ms", figures={"p99": 4.0}, campaigns=(), wall_s=1.5)
    return SelftestFile(
        schema_=SelftestFile.schema_id(),
        selftest_id=f"20261125T{hour:02}0000Z-{build[:8]}",
        created_utc=f"2026-11-25T{hour:02}:00:00Z",
        finished_utc=f"2026-11-25T{hour:02}:20:00Z",
        version="0.2.0",
        revision="unknown",
        dirty=False,
        build=build,
        machine={"cpu": ["x"]},
        testbed="local",
        verdict="passed",
        parts=(part,),
        wall_s=1.5,
    )


def test_what_is_stored_is_read_again(tmp_path: Path) -> None:
    path = put_selftest(tmp_path / "selftest", made(9))
    assert read_selftest(path) == made(9)
    pin = made(9).pin(asked=True)
    assert (pin.parts, pin.says, pin.asked) == ({"stall": "passed"}, {"stall": "4 ms"}, True)


def test_the_newest_of_this_build_counts_and_else_the_newest(tmp_path: Path) -> None:
    assert newest_selftest(tmp_path / "none", build=BUILD) is None
    for one in (made(9), made(8), made(11, OTHER)):
        put_selftest(tmp_path, one)
    found = newest_selftest(tmp_path, build=BUILD)
    assert found is not None
    assert found.selftest_id == made(9).selftest_id
    found = newest_selftest(tmp_path, build="c" * 64)
    assert found is not None
    assert found.build == OTHER
    put_selftest(tmp_path, made(10).model_copy(update={"verdict": "incomplete"}))
    found = newest_selftest(tmp_path, build=BUILD)
    assert found is not None
    assert found.selftest_id == made(9).selftest_id, "a part that was tried alone does not take a whole one's place"
    put_selftest(tmp_path, made(12).model_copy(update={"verdict": "failed"}))
    found = newest_selftest(tmp_path, build=BUILD)
    assert found is not None
    assert found.verdict == "failed"


def test_one_that_was_changed_says_nothing(tmp_path: Path) -> None:
    path = put_selftest(tmp_path, made(9))
    path.chmod(0o644)
    path.write_text(path.read_text().replace("passed", "failed"))
    with pytest.raises(FormatError, match="changed after it was written"):
        read_selftest(path)
    with pytest.raises(NotFoundError):
        read_selftest(selftest_file(tmp_path, "20261125T100000Z-aaaaaaaa"))
    assert newest_selftest(tmp_path, build=BUILD) is None


def test_a_machine_is_known_by_what_a_host_is_not_by_its_names() -> None:
    cpu = {"model name": "A", "microcode": "1"}
    one = machine_of([node("h1", cpu=cpu, kernel="6.1"), node("h2", cpu=cpu, kernel="6.1")])
    assert one == machine_of([node("other", cpu={**cpu, "microcode": "2"}, kernel="6.1")])
    assert one != machine_of([node("h1", cpu=cpu, kernel="6.2")])
    assert one != machine_of([node("h1", cpu=cpu, kernel="6.1"), node("h2", cpu={"model name": "B"}, kernel="6.1")])


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [
        (["passed", "passed"], "passed"),
        (["passed", "not judged"], "incomplete"),
        (["passed", "not made"], "incomplete"),
        (["not made", "failed"], "failed"),
        ([], "incomplete"),
    ],
)
def test_the_verdict_on_all_parts(verdicts: list[str], found: str) -> None:
    assert overall(verdicts) == found  # type: ignore[arg-type]
