# SPDX-License-Identifier: BSD-3-Clause
"""Records of columns are the stored ones without their samples' texts; a cache is never more than the files say."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadge_results import Attempt, Campaign, CampaignWriter, DamagedError, FormatError, LaunchRecord
from cadge_results.formats.histogram import decode
from cadge_results.formats.result import Samples
from cadge_results.store import columns as columns_module
from cadge_results.store import reading as reading_module
from cadge_results.store.columns import Maker, columns_of, pack, unpack
from cadge_results.store.verify import verify

from .conftest import make_histogram, make_meta, make_plan, make_record

HISTOGRAM = make_histogram([9, 10, 11])
CHECK = {"name": "payload", "ok": False, "detail": "endpoint 1"}
SAMPLES = {
    "endpoint": 1,
    "histogram": HISTOGRAM,
    "count": 3,
    "sum_ns": 30,
    "min_ns": 9,
    "max_ns": 11,
    "sum_sq_ns2": "300",
    "first_ns": [9, 10, 11],
}
FULL: dict[str, Any] = {
    "reason": "it is said",
    "reason_code": "UNSOUND",
    "status": "unsound",
    "started_ns_since_launch": 7,
    "counted_operations": 12,
    "warmup": {"operations": 4, "ns": 5, "steady": False, "rule": "its limit"},
    "elapsed_ns": 8,
    "operations": 9,
    "bytes": 10,
    "lost": 11,
    "late": 12,
    "quantities": {
        "latency": [SAMPLES, SAMPLES | {"endpoint": 2}],
        "throughput": [{"endpoint": 0, "amount": 5, "elapsed_ns": 6}],
        "fit": [{"endpoint": 0, "value": 1.5}, {"endpoint": 1, "value": 1e300}, {"endpoint": 2, "value": 3}],
        "none": [],
    },
    "executions": {"expected": 4, "server": 3},
    "verified": {"in_loop": 1, "full_before": 2, "full_after": 3, "mismatches": 4},
    "cpu": [
        {
            "user_ns": 1,
            "system_ns": 2,
            "voluntary_switches": 3,
            "involuntary_switches": 4,
            "minor_faults": 5,
            "major_faults": 6,
            "wall_ns": 7,
            "run_wait_ns": 8,
            "stolen_ns": None,
            "system_calls": 9,
            "cycles": 10,
            "instructions": 11,
        }
    ],
    "counters": [{"polls": 4}, {}],
    "checks": [CHECK, CHECK | {"ok": True, "detail": ""}],
}


def again(*records: LaunchRecord) -> list[LaunchRecord]:
    """Return records as they are after they were columns."""
    maker = Maker()
    return [maker.record(one) for one in unpack(pack([columns_of(record, "0" * 64) for record in records]))]


def without_texts(record: LaunchRecord) -> dict[str, Any]:
    """Return a record's JSON without what columns leave out."""
    raw: dict[str, Any] = json.loads(record.to_json())
    raw["launch"]["points"] = []
    for attempt in (raw["result"] or {}).get("attempts", ()):
        for several in attempt["quantities"].values():
            for one in several:
                if "histogram" in one:
                    one |= {"histogram": "", "first_ns": []}
    return raw


def with_attempts(launch: int = 0, **changes: Any) -> LaunchRecord:  # noqa: ANN401 - JSON
    """Return the record of a launch, with such changes in each attempt."""
    raw: dict[str, Any] = json.loads(make_record(make_plan(), launch).to_json())
    attempts = raw["result"]["attempts"]
    raw["result"]["attempts"] = [one | changes for one in attempts]
    return LaunchRecord.from_object(raw, source="test")


def test_every_field_comes_back() -> None:
    record = with_attempts(**FULL)
    assert record.result is not None
    given = record.result.attempts[0]
    assert {name for name in Attempt.model_fields if getattr(given, name) is None} == set()
    assert FULL.keys() | {"attempt_id", "point_id", "workload", "order"} == Attempt.model_fields.keys()
    plain, failed = with_attempts(1), make_record(make_plan(), 1, result=None, status="failed", reason="x")
    for before, after in zip((record, plain, failed), again(record, plain, failed), strict=True):
        assert repr(without_texts(before)) == repr(without_texts(after))  # NaN is not equal to itself
        assert type(after.result) is type(before.result)
        for old, new in zip(_attempts(before), _attempts(after), strict=True):
            assert repr(old.checks) == repr(new.checks)
            assert old.reason_code is new.reason_code
            assert [type(value) for value in new.__dict__.values()] == [type(value) for value in old.__dict__.values()]
            for name, several in old.quantities.items():
                mine = new.quantities[name]
                assert [type(one) for one in mine] == [type(one) for one in several]
                for ours, theirs in zip(mine, several, strict=True):
                    if isinstance(theirs, Samples):
                        assert isinstance(ours, Samples)
                        assert ours.buckets == decode(theirs.histogram)


def _attempts(record: LaunchRecord) -> tuple[Attempt, ...]:
    return record.result.attempts if record.result is not None else ()


def test_a_damaged_histogram_stays_a_text_that_is_refused_when_it_is_needed() -> None:
    record = with_attempts(quantities={"latency": [SAMPLES, SAMPLES | {"histogram": "AAAA"}, SAMPLES]})
    [made] = again(record)
    first, damaged, last = _attempts(made)[0].samples("latency")
    assert first.buckets == last.buckets == decode(HISTOGRAM)
    with pytest.raises(FormatError, match="cannot be decoded"):
        _ = damaged.buckets


@pytest.mark.parametrize("place", [0, 40, 70, -1])
def test_damaged_columns_are_refused(place: int) -> None:
    packed = bytearray(pack([columns_of(with_attempts(), "0" * 64)]))
    packed[place] ^= 1
    for damaged in (bytes(packed), bytes(packed[: len(packed) // 2]), b""):
        with pytest.raises(FormatError):
            unpack(damaged)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A campaign with two records, in whose cache everything is worth it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(reading_module, "WORTH_BYTES", 0)
    plan = make_plan()
    with CampaignWriter.create(tmp_path / "store", meta=make_meta(plan), plan=plan, sweep_text="x") as writer:
        for number in range(2):
            writer.add_launch(with_attempts(number))
        return Campaign(writer.campaign.path)


def read(campaign: Campaign) -> list[LaunchRecord]:
    return list(Campaign(campaign.path).readings())


def cache_file(tmp_path: Path) -> Path:
    [path] = (tmp_path / "cache/cadge/columns").iterdir()
    return path


def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the name of each record that is made of its file."""
    seen: list[str] = []
    real: Callable[..., Any] = columns_of

    def counting(record: LaunchRecord, digest: str) -> Any:  # noqa: ANN401 - what the real one returns
        seen.append(record.launch_id)
        return real(record, digest)

    monkeypatch.setattr(reading_module, "columns_of", counting)
    return seen


def test_a_second_reading_is_the_same_and_parses_nothing(stored: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = parses(monkeypatch)
    first = read(stored)
    assert len(seen) == 2
    assert [repr(one) for one in read(stored)] == [repr(one) for one in first]
    assert len(seen) == 2
    assert [without_texts(one) for one in first] == [without_texts(one) for one in stored.launches()]


def test_reading_afresh_asks_no_cache_and_leaves_none(
    stored: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = parses(monkeypatch)
    expected = [repr(one) for one in Campaign(stored.path).readings(afresh=True)]
    assert not (tmp_path / "cache").exists()
    read(stored)
    assert len(seen) == 4
    campaign = Campaign(stored.path)
    assert [repr(one) for one in campaign.readings(afresh=True)] == expected
    assert len(seen) == 6, "the cache was not asked"
    list(campaign.readings())
    assert len(seen) == 6, "nothing of it was lost"


def changed(path: Path, content: bytes, *, proven: bool) -> None:
    """Put other bytes into a stored file, of the same time; proven: with the checksum that belongs to them."""
    before = path.stat()
    for one in (path, path.with_name(path.name + ".sha256")):
        one.chmod(0o644)
    path.write_bytes(content)
    if proven:
        line = f"{hashlib.sha256(content).hexdigest()}  {path.name}\n"
        path.with_name(path.name + ".sha256").write_text(line)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_changed_file_is_never_answered_from_the_cache(stored: Campaign, tmp_path: Path) -> None:
    """Not even where size and time are the old ones: damaged it is refused, and with a checksum it is read."""
    read(stored)
    path = min(stored.layout.launches.glob("*.json"))
    content = path.read_bytes()
    other = content.replace(b'"operations":3,', b'"operations":4,', 1)
    assert len(other) == len(content) != 0
    assert other != content
    changed(path, other, proven=False)
    with pytest.raises(DamagedError, match=path.name):
        read(stored)
    assert [damage.path for damage in verify(stored).damages] == [path]
    changed(path, other, proven=True)
    assert _attempts(read(stored)[0])[0].operations == 4
    changed(path, content[:-20], proven=False)
    with pytest.raises(DamagedError, match="ends early"):
        read(stored)
    assert cache_file(tmp_path).is_file()


@pytest.mark.parametrize("first", ["-1", "01", "1.5", "null", '"1"', "1,", "9" * 19, ",".join(["1"] * 1001), "[1]"])
def test_first_samples_that_no_record_may_have_are_refused(stored: Campaign, first: str) -> None:
    """Columns leave out lists that are whole and valid, and no other."""
    path = min(stored.layout.launches.glob("*.json"))
    content = path.read_bytes()
    [*lists] = re.findall(rb'"first_ns":\[[^]]*\]', content)
    assert lists
    changed(path, content.replace(lists[0], b'"first_ns":[%s]' % first.encode(), 1), proven=True)
    with pytest.raises(DamagedError, match=path.name):
        read(stored)


@pytest.mark.parametrize("first", ["", "0", "7", "9" * 18, ",".join(["1"] * 1000)])
def test_first_samples_that_a_record_may_have_are_left_out(stored: Campaign, first: str) -> None:
    path = min(stored.layout.launches.glob("*.json"))
    content = re.sub(rb'"first_ns":\[[^]]*\]', b'"first_ns":[%s]' % first.encode(), path.read_bytes())
    changed(path, content, proven=True)
    assert [without_texts(one) for one in read(stored)] == [without_texts(one) for one in stored.launches()]


def test_a_damaged_cache_is_made_anew_and_a_lost_one_is_no_loss(
    stored: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [repr(one) for one in read(stored)]
    path = cache_file(tmp_path)
    whole = path.read_bytes()
    seen = parses(monkeypatch)
    for damaged in (b"", whole[:50], whole[:-1], whole[:90] + b"\xff" + whole[91:], b"\0" * len(whole)):
        path.write_bytes(damaged)
        assert [repr(one) for one in read(stored)] == expected
        assert path.read_bytes() == whole
    path.unlink()
    assert [repr(one) for one in read(stored)] == expected
    assert path.read_bytes() == whole
    assert len(seen) == 12
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_columns_of_another_cadge_are_not_used(stored: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    read(stored)
    monkeypatch.setattr(columns_module, "_made_by", lambda: b"x" * 32)
    seen = parses(monkeypatch)
    read(stored)
    assert len(seen) == 2


@pytest.mark.parametrize("where", ["relative", ""])
def test_without_a_cache_everything_is_read(
    stored: Campaign, monkeypatch: pytest.MonkeyPatch, where: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", where)
    monkeypatch.setenv("HOME", "")
    assert len(read(stored)) == 2
    assert not (tmp_path / "cache").exists()


def test_a_second_process_gives_the_same(stored: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [repr(one) for one in read(stored)]
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(reading_module, "SHARED_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    seen = parses(monkeypatch)
    assert [repr(one) for one in read(stored)] == expected
    assert len(seen) == 1
    path = sorted(stored.layout.launches.glob("*.json"))[1]
    changed(path, path.read_bytes().replace(b'"order":1,', b'"order":-1,', 1), proven=True)
    with pytest.raises(FormatError, match=rf"{path.name}.*order"):
        read(stored)
    monkeypatch.setattr(reading_module.sys, "executable", "/bin/false")
    with pytest.raises(FormatError, match=rf"{path.name}.*order"):
        read(stored)


def test_a_cache_of_several_bundles_is_written_as_it_is_made(
    stored: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record is a bundle of its own here, the second one made by another process."""
    expected = [repr(one) for one in Campaign(stored.path).readings(afresh=True)]
    monkeypatch.setattr(reading_module, "BUNDLE_BYTES", 0)
    monkeypatch.setattr(reading_module, "SHARED_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    seen = parses(monkeypatch)
    assert [repr(one) for one in read(stored)] == expected
    assert len(seen) == 1
    with cache_file(tmp_path).open("rb") as stream:
        bundles = reading_module.PackedFile(stream)
        assert [[name for name, _ in columns_module.names_in(one)] for one in bundles] == [
            [name] for name in sorted(stored.launch_ids())
        ]
        assert bundles[:] == [bundles[0], bundles[1]]
    assert [repr(one) for one in read(stored)] == expected
    assert len(seen) == 1


def test_a_cache_for_which_there_is_no_room_is_no_loss(stored: Campaign, tmp_path: Path) -> None:
    expected = [repr(one) for one in Campaign(stored.path).readings(afresh=True)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        assert [repr(one) for one in read(stored)] == expected
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "cache/cadge/columns").iterdir())


def test_what_stops_halfway_keeps_no_cache(stored: Campaign, tmp_path: Path) -> None:
    readings = Campaign(stored.path).readings()
    next(readings)
    [part] = (tmp_path / "cache/cadge/columns").iterdir()
    assert part.name.endswith(".part")
    readings.close()
    assert not list(part.parent.iterdir())


def test_the_cache_stays_small(stored: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache/cadge/columns"
    folder.mkdir(parents=True)
    (folder / "old").write_bytes(b"x" * 1000)
    os.utime(folder / "old", (1, 1))
    monkeypatch.setattr(reading_module, "CACHE_BYTES_MAX", 100_000)
    read(stored)
    assert len(list(folder.iterdir())) == 2
    cache = max(folder.iterdir(), key=lambda one: one.stat().st_mtime)
    monkeypatch.setattr(reading_module, "CACHE_BYTES_MAX", cache.stat().st_size + 500)
    cache.write_bytes(b"")
    read(stored)
    assert list(folder.iterdir()) == [cache]


def test_numpy_is_imported_where_it_is_used() -> None:
    """It takes a tenth of a second, which a command that reads no histogram would pay as well."""
    code = "import sys, cadge_results, cadge_results.store.verify; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
