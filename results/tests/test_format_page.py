# SPDX-License-Identifier: BSD-3-Clause
"""FIELDS.md has every field of the schemas and no other; what FORMAT.md shows runs."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cadge_results import Campaign, CampaignWriter, LaunchRecord
from cadge_results.formats.point import Point
from cadge_results.formats.result import Samples
from cadge_results.store.layout import Layout

RESULTS = Path(__file__).parents[1]
PAGE = (RESULTS / "FORMAT.md").read_text(encoding="utf-8")
FIELDS = (RESULTS / "FIELDS.md").read_text(encoding="utf-8")
OF_USERS = {"cadge.sweep/2", "cadge.pattern/1", "cadge.floor/1", "cadge.layer/1", "cadge.selftest/1"}
"""Documents that are no part of a campaign's folder, or copies of a user's file."""


def schemas() -> dict[str, dict[str, Any]]:
    found = (json.loads(path.read_text(encoding="utf-8")) for path in (RESULTS / "schema").glob("*.json"))
    return {schema["title"]: schema for schema in found}


def sections(page: str) -> Iterator[tuple[str, str]]:
    """Yield the heading of each section of a page, without marks, and its text."""
    parts = re.split(r"^#{2,3} (.+)$", page, flags=re.MULTILINE)
    yield from ((heading.strip("`"), text) for heading, text in zip(parts[1::2], parts[2::2], strict=True))


def told(text: str) -> set[str]:
    """Return the fields that a section's table is about."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_document_of_a_campaign_has_a_section_with_every_field_and_no_other() -> None:
    known, page = schemas(), dict(sections(FIELDS))
    for title in known.keys() - OF_USERS:
        assert told(page[title]) == set(known[title]["properties"]), title
    assert {title for title in page if title.startswith("cadge.")} == known.keys() - OF_USERS
    assert all(f"`{title}`" in dict(sections(PAGE))["The folder"] for title in OF_USERS)


def test_parts_of_documents_are_told_with_every_field_and_no_other() -> None:
    parts = {name: part for schema in schemas().values() for name, part in schema.get("$defs", {}).items()}
    known = {heading: text for heading, text in sections(FIELDS) if heading in parts}
    assert {"Attempt", "Samples", "Rate", "Number", "CpuUse", "Subject", "Workload", "Endpoint"} <= known.keys()
    for name, text in known.items():
        assert told(text) == set(parts[name]["properties"]), name


def test_every_file_that_the_store_has_is_told() -> None:
    folder = dict(sections(PAGE))["The folder"]
    layout = Layout(Path("c"))
    files = [layout.meta, layout.plan, layout.sweep, layout.trace, layout.native, layout.report, layout.study("NAME")]
    files += [layout.node("HOST"), layout.launch("LAUNCH"), layout.block("BLOCK"), layout.imported_file("ID")]
    for path in files:
        assert f"`{path.relative_to('c')}`" in folder
    for path in (layout.decisions, layout.later):
        assert f"`{path.name}/look-N.json`" in folder
    assert f"`{layout.aside.name}/N-WHY/`" in folder


def sha256(value: object) -> str:
    """Return the digest of canonical JSON, as the page describes it."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_ids_and_digests_are_made_as_the_page_says(finished: Campaign) -> None:
    plan = json.loads(finished.layout.plan.read_bytes())
    assert plan.pop("plan_hash") == sha256(plan) == finished.plan.plan_hash
    for point in plan["points"]:
        both = {name: point[name] for name in ("subject", "workload")}
        made = Point.model_validate_json(json.dumps(both))  # the ids of this plan are made up
        assert made.point_id == sha256(both)[:16]
    meta = json.loads(finished.layout.meta.read_bytes())
    assert meta.pop("checksum") == sha256(meta)


def code(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def finished(new_writer: Callable[[], CampaignWriter], record: Callable[..., LaunchRecord]) -> Campaign:
    with new_writer() as writer:
        for place, _ in enumerate(writer.campaign.plan.launches):
            writer.add_launch(record(place))
        writer.finish("finished", at=datetime(2026, 11, 25, tzinfo=UTC))
    return writer.campaign


def latencies(campaign: Campaign) -> list[tuple[LaunchRecord, str, str, Samples]]:
    return [
        (record, attempt.workload.pattern, attempt.status, samples)
        for record in campaign.launches()
        for attempt in (record.result.attempts if record.result else ())
        for samples in attempt.samples("latency")
    ]


def test_the_ten_lines_print_the_means_and_find_a_change(finished: Campaign) -> None:
    lines, _ = code("python")
    assert len(lines.splitlines()) <= 10

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-c", lines], cwd=finished.path, capture_output=True, text=True, check=False
        )

    expected = [
        f"{record.launch.layer} {pattern} {status} {round(samples.sum_ns / samples.count)} ns"
        for record, pattern, status, samples in latencies(finished)
    ]
    assert expected
    assert sorted(run().stdout.splitlines()) == sorted(expected)
    path = next(finished.layout.launches.glob("*.json"))
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"seed"', '"seed" '))
    assert f"{path.name} was changed" in run().stderr


def test_any_library_of_hdrhistogram_reads_the_histogram(finished: Campaign) -> None:
    _, lines = code("python")
    for _, _, _, samples in latencies(finished):
        names: dict[str, Any] = {"samples": {"histogram": samples.histogram}}
        exec(lines, names)  # noqa: S102 - what the page shows
        assert names["median_ns"] == samples.buckets.percentile(50)


def test_the_sql_gives_the_same_means(finished: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra `queries` is not installed")
    monkeypatch.chdir(finished.path)
    (sql,) = code("sql")
    sums: dict[tuple[str, str, str], list[int]] = {}
    for record, pattern, status, samples in latencies(finished):
        if status == "done":
            both = sums.setdefault((record.launch.layer, record.launch.place, pattern), [0, 0])
            both[0] += samples.sum_ns
            both[1] += samples.count
    found = {row[:3]: row[3] for row in duckdb.sql(sql).fetchall()}
    assert found == {key: pytest.approx(total / count) for key, (total, count) in sums.items()}
