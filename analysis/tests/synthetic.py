# SPDX-License-Identifier: BSD-3-Clause
"""Makes synthetic campaigns through the store's own writer: made-up numbers, valid in every format.

Everything comes from a seed, so the same options give the same bytes. Numbers have the shape of real ones (a start-up
cost, a cost a byte, a launch's own offset, a tail), nothing more.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram
from synthetic_world import COST, CREATED, FLOORS, LAYERS, REFUSED, SIZES, library, node, used

from cadge_results import (
    Campaign,
    CampaignMeta,
    CampaignWriter,
    LaunchRecord,
    NodeFacts,
    Plan,
    campaign_id,
    read_workloads,
)
from cadge_results.formats.histogram import Histogram, decode

NEWER = ("touch", "buffers")
"""Parameters that an aged campaign has not."""
WORKLOADS = read_workloads(Path(__file__).parents[2] / "harness")
KEY = ("place", "wait", "layer", "kind")
_MADE: dict[object, Path] = {}
"""Campaigns of this process by their options, where no test changes them."""
_FOLDER = tempfile.TemporaryDirectory(prefix="cadge-synthetic-")


def never(_: object) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the campaign should look like."""

    layers: Sequence[str] = LAYERS
    sizes: Sequence[int] = SIZES
    places: Sequence[str] = ("within", "between")
    waits: Sequence[str] = ("poll", "block")
    patterns: Sequence[tuple[str, int]] = (("rpc", 1), ("stream", 64))
    touches: Sequence[str] = ("write+read",)
    aged: bool = False
    """As an older version left it: its patterns did not touch data, and had no parameter for that."""
    launches: int = 6
    epochs: int = 1
    """All launches together are dealt to so many."""
    samples: int = 4000
    floors: bool = True
    troubles: bool = True
    status: str = "finished"
    settings: Sequence[Mapping[str, str]] = ({},)
    given: Sequence[Mapping[str, int | str]] = ({},)
    """Values of further parameters: a point for each of them."""
    seed: int = 7
    virtual: bool = True
    node: Mapping[str, object] = field(default_factory=dict)
    """Facts of each host beside the usual ones, or instead of them."""
    roles: tuple[str, str] = ("client", "server")
    twins: Sequence[str] = ()
    """Layers that are measured twice."""
    titles: Mapping[str, str] = field(default_factory=dict)
    sweep: Mapping[str, object] = field(default_factory=lambda: {"baseline": "sockets-tcp"})
    """What the sweep says beside its name."""
    beside_native: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    """What layers' files say of them beside plain programs."""
    clock_step_ns: float | None = None
    lost: Callable[[Mapping[str, Any]], bool] = never
    """Whether a launch was not run."""
    drop_launches: int = 0
    attempt_hook: Callable[[dict[str, Any], dict[str, Any], int], None] | None = None


def point_id(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


_EMPTY = base64.b64decode(HdrHistogram(1, 100_000_000_000, 3).encode())
_HEAD = zlib.decompress(_EMPTY[8:])
"""What begins the blob of such a histogram, and what is in it before its counts."""


def _varint(number: int) -> bytes:
    """Return a number as histograms have it: ZigZag LEB128."""
    left, digits = 2 * number if number >= 0 else -2 * number - 1, bytearray()
    while left > 127:
        digits.append(left & 127 | 128)
        left >>= 7
    return bytes((*digits, left))


def encoded(values: Iterable[tuple[int, int]]) -> str:
    """Return an HDR V2 histogram of (value in ns, how often), in a third of the time that HdrHistogram takes."""
    counts: Counter[int] = Counter()
    for value, often in values:
        bucket = (value | 2047).bit_length() - 11
        counts[bucket * 1024 + (value >> bucket)] += often
    body, end = bytearray(), 0
    for place, often in sorted(counts.items()):
        body += (_varint(end - place) if place > end else b"") + _varint(
            often
        )  # a negative one: so many places are empty
        end = place + 1
    blob = zlib.compress(_HEAD[:4] + len(body).to_bytes(4, "big") + _HEAD[8:] + body)
    return base64.b64encode(_EMPTY[:4] + len(blob).to_bytes(4, "big") + blob).decode()


def counted(*values: tuple[int, int]) -> Histogram:
    """Return a histogram of (value in ns, how often), as it is read."""
    return decode(encoded(values))


def set_samples(attempt: dict[str, Any], values: Sequence[tuple[int, int]], quantity: str = "latency") -> None:
    """Let endpoint 0 of an attempt have recorded (value in ns, how often)."""
    attempt.setdefault("quantities", {})[quantity] = [
        {
            "endpoint": 0,
            "histogram": encoded(values),
            "count": sum(often for _, often in values),
            "sum_ns": sum(value * often for value, often in values),
            "min_ns": min(value for value, _ in values),
            "max_ns": max(value for value, _ in values),
            "sum_sq_ns2": str(sum(value * value * often for value, often in values)),
            "first_ns": [value for value, _ in values][:20],
        }
    ]


def set_rate(attempt: dict[str, Any], amount: int, elapsed_ns: int, quantity: str = "throughput") -> None:
    """Let endpoint 0 of an attempt have counted an amount in a time."""
    attempt.setdefault("quantities", {})[quantity] = [
        {"endpoint": 0, "amount": amount, "elapsed_ns": elapsed_ns},
    ]


def _draw(rng: random.Random, center: float, samples: int) -> list[tuple[int, int]]:
    """Return samples around a centre, with a long right tail; each drawn value stands for several."""
    weight = max(1, samples // 160)
    drawn: list[tuple[int, int]] = []
    left = samples
    while left > 0:
        often = min(weight, left)
        spread = math.exp(abs(rng.gauss(0, 0.06)) if rng.random() < 0.97 else abs(rng.gauss(0.5, 0.6)))
        drawn.append((max(1, round(center * 0.97 * spread)), often))
        left -= often
    return drawn


def _points(options: Options) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    for place in options.places:
        for wait in options.waits:
            for layer in options.layers:
                if place == "self" and layer != "null-self":
                    continue
                for settings in options.settings:
                    own = _layer_points(options, layer, place, wait, settings)
                    points.extend(own)
                    if layer in options.twins:
                        points.extend(_again(point) for point in own if point["state"] == "planned")
            if options.floors:
                for floor, largest in FLOORS.get((place, wait), {}).items():
                    points.extend(_floor_points(options, floor, place, wait, largest))
    return points


def _point(
    kind: str,
    layer: str,
    place: str,
    wait: str,
    pattern: str,
    size: int,
    depth: int,
    settings: Mapping[str, str] | None = None,
    touch: str = "write+read",
    further: Mapping[str, int | str] | None = None,
) -> dict[str, Any]:
    settings = dict(settings or {})
    values: dict[str, Any] = {WORKLOADS.file(pattern).axis: size, "depth": depth, "operation": "put", "touch": touch}
    values |= further or {}
    given = {key: value for key, value in values.items() if key in WORKLOADS.file(pattern).parameters}
    beside = ([] if touch == "write+read" else [touch]) + sorted(map(str, (further or {}).items()))
    return {
        "point_id": point_id(kind, layer, place, wait, pattern, size, depth, *sorted(settings.items()), *beside),
        "subject": {"kind": kind, "layer": layer, "settings": settings, "place": place, "wait": wait},
        "workload": WORKLOADS.file(pattern).workload(pattern, given).model_dump(mode="json"),
        "duration_ms": 25,
        "state": "planned",
    }


def _again(point: dict[str, Any]) -> dict[str, Any]:
    subject = {**point["subject"], "twin": True}
    return {**point, "point_id": point_id(point["point_id"], "twin"), "subject": subject}


def flat(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point's values by name, whatever object they are in; `size` is the value of its axis."""
    workload = point["workload"]
    axis = WORKLOADS.file(workload["pattern"]).axis
    values = workload["parameters"]
    return {**point["subject"], **values, "pattern": workload["pattern"], "size": values[axis]}


def _layer_points(
    options: Options, layer: str, place: str, wait: str, settings: Mapping[str, str]
) -> list[dict[str, Any]]:
    points = []
    for pattern, depth in options.patterns:
        touches = options.touches if "touch" in WORKLOADS.file(pattern).parameters else options.touches[:1]
        for size, touch, further in product(options.sizes, touches, options.given):
            point = _point("layer", layer, place, wait, pattern, size, depth, settings, touch, further)
            if any(point["workload"] == made["workload"] for made in points):
                continue  # further values that the pattern does not have make no second point
            if options.troubles:
                refused: tuple[str, str] | None = REFUSED.get((layer, place, wait))
                if layer == "peregrine-shm" and place == "between":
                    refused = ("PLACE", "peregrine-shm runs only within one host")
                if layer == "sockets-unix" and place == "between":
                    refused = ("NO_CAP", "a Unix socket does not leave its host")
                if layer == "sockets-udp" and size > 65507:
                    refused = ("MSG_TOO_LARGE", "a UDP datagram holds at most 65,507 bytes; the driver never fragments")
                if refused:
                    point |= {"state": "refused", "reason_code": refused[0], "reason": refused[1]}
            points.append(point)
    return points


def _floor_points(options: Options, floor: str, place: str, wait: str, largest: int) -> list[dict[str, Any]]:
    sizes = [size for size in options.sizes if size <= largest]
    made = [("exchange", 1)]
    if "flow" in WORKLOADS.floors[floor].forms:
        made += [("flow", depth) for pattern, depth in options.patterns if pattern == "stream"]
    return [
        _point("floor", floor, place, wait, form, size, depth, touch=touch)
        for (form, depth), size, touch in product(made, sizes, options.touches)
    ]


def _key(subject: Mapping[str, Any]) -> tuple[str, str, str, str, str, bool]:
    place, wait, layer, kind = (subject[key] for key in KEY)
    return place, wait, layer, kind, json.dumps(subject["settings"]), bool(subject.get("twin"))


def _plan(options: Options) -> Plan:
    points = _points(options)
    launches: list[dict[str, Any]] = []
    planned = [p for p in points if p["state"] == "planned"]
    keys = sorted({_key(p["subject"]) for p in planned})
    patterns = {p["workload"]["pattern"] for p in points}
    rng = random.Random(options.seed)
    for number in range(options.launches):
        order = list(keys)
        rng.shuffle(order)
        for place, wait, layer, kind, settings, twin in order:
            ids = [p["point_id"] for p in planned if _key(p["subject"]) == (place, wait, layer, kind, settings, twin)]
            rng.shuffle(ids)
            named = (place, wait, layer, number, settings, *["twin"] * twin)
            launches.append(
                {
                    "launch_id": f"{place[0]}-{len(launches):04d}-{point_id(*named)[:8]}",
                    "block": f"b-{place}",
                    "subject": {
                        "kind": kind,
                        "layer": layer,
                        "settings": json.loads(settings),
                        "place": place,
                        "wait": wait,
                        **({"twin": True} if twin else {}),
                    },
                    "launcher": "mpirun" if layer.startswith("mpi") else "direct",
                    "endpoints": _cast(place, options.roles),
                    "round": number,
                    **({"epoch": number * options.epochs // options.launches} if options.epochs > 1 else {}),
                    "seed": rng.randrange(2**40),
                    "point_ids": ids,
                    "wall_ms": 900,
                    "deadline_ms": 20000,
                }
            )
    document: dict[str, Any] = {
        "schema": "cadge.plan/2",
        "plan_hash": "0" * 64,
        "sweep": {"name": "synthetic", **options.sweep},
        "seed": options.seed,
        "points": points,
        "launches": launches,
        "blocks": [
            {
                "block_id": f"b-{place}",
                "place": place,
                "hosts": ["h1", "h2"] if place == "between" else ["h1"],
                "launch_ids": [x["launch_id"] for x in launches if x["subject"]["place"] == place],
                "wall_ms": 60000,
            }
            for place in options.places
            if any(x["subject"]["place"] == place for x in launches)
        ],
        "patterns": {name: WORKLOADS.file(name).to_object() for name in sorted(patterns)},
        "floors": {name: floor.to_object() for name, floor in WORKLOADS.floors.items()},
        "estimate": {"wall_s": 212.0, "disk_bytes": 9_000_000},
    }
    if options.beside_native:
        document["beside_native"] = {name: list(known) for name, known in options.beside_native.items()}
    if options.aged:
        _age(document)
    draft = Plan.from_object(document, source="synthetic plan")
    return Plan.from_object(document | {"plan_hash": draft.expected_hash()}, source="synthetic plan")


def _age(document: dict[str, Any]) -> None:
    for point in document["points"]:
        for name in NEWER:
            point["workload"]["parameters"].pop(name, None)
    for file in document["patterns"].values():
        file.update(constraints=[], words={})
        for name in NEWER:
            file["parameters"].pop(name, None)
        file["floor"]["carry"] = [name for name in file["floor"]["carry"] if name != "touch"]


def _cast(place: str, roles: tuple[str, str]) -> list[dict[str, Any]]:
    if place == "self":
        return [{"role": "client", "host": "h1", "peers": [0]}]
    second = "h2" if place == "between" else "h1"
    return [{"role": roles[0], "host": "h1", "peers": [1]}, {"role": roles[1], "host": second, "peers": [0]}]


def _cost(layer: str, place: str, wait: str, size: int) -> float:
    start, per_ns = COST[place].get(layer, (5000, 2.0))
    sleeping = 0 if wait == "poll" or layer == "floor-futex" else 4200 + start * 0.3
    return start + sleeping + 2 * size / per_ns


def _cpu(total_ns: int, wait: str, operations: int) -> dict[str, int]:
    busy = total_ns if wait == "poll" else total_ns // 2
    return {
        "user_ns": busy * 3 // 5,
        "system_ns": busy * 2 // 5,
        "voluntary_switches": operations if wait == "block" else 1,
        "involuntary_switches": 2,
        "minor_faults": 3,
        "major_faults": 0,
    }


def _age_record(record: dict[str, Any]) -> None:
    """Let a record be of the plan that `_age` made."""
    for one in (*record["launch"]["points"], *record["result"]["attempts"]):
        given = {name: value for name, value in one["workload"]["parameters"].items() if name not in NEWER}
        one["workload"] = {**one["workload"], "parameters": given}


def _attempt(
    options: Options, point: dict[str, Any], order: int, number: int, rng: random.Random, skew: float
) -> dict[str, Any]:
    known = flat(point)
    layer, place, wait, size = str(known["layer"]), str(known["place"]), str(known["wait"]), int(known["size"])
    depth = int(known.get("depth", 1))
    file = WORKLOADS.file(known["pattern"])
    attempt: dict[str, Any] = {"point_id": point["point_id"], "workload": point["workload"], "attempt_id": str(order)}
    attempt |= {"order": order, "status": "done"}
    center = _cost(layer, place, wait, size) * skew * math.exp(rng.gauss(0, 0.006)) * max(1, depth // 8)
    if file.main_quantity.kind == "rate":
        operations = max(10, round(25e6 / (200 + size / 6)))
        elapsed = round(operations * (_cost(layer, place, wait, size) * skew / 24 + size / 9) * rng.uniform(0.98, 1.02))
        attempt |= {"bytes": operations * size, "lost": 0, "late": 0}
        set_rate(attempt, operations * size, elapsed)
    else:
        values = _draw(rng, center, options.samples)
        operations = sum(often for _, often in values)
        elapsed = sum(value * often for value, often in values)
        attempt |= {
            "bytes": operations * size,
            "lost": 3 if layer == "sockets-udp" and number == 1 and size == 8 else 0,
            "late": 0,
        }
        set_samples(attempt, values)
        if "visible" in file.quantities:
            set_samples(attempt, [(2 * value, often) for value, often in values], "visible")
    attempt |= {
        "started_ns_since_launch": 1_000_000 * order,
        "warmup": {"operations": 500, "ns": 2_000_000, "steady": True, "rule": "three windows within 2 %"},
        "elapsed_ns": elapsed,
        "operations": operations,
        "executions": {"expected": operations, "server": operations},
        "verified": {"in_loop": operations, "full_before": 8, "full_after": 8, "mismatches": 0},
        "cpu": [_cpu(elapsed, wait, operations), _cpu(elapsed * 9 // 10, wait, operations)],
        "checks": [{"name": "payload", "ok": True, "detail": ""}],
    }
    if options.troubles and layer == "rdma-ofi" and place == "between" and size >= 1 << 20 and number in (2, 4):
        _spoil(attempt, "DEADLINE", "no progress for 3000 ms: 41 of 64 writes completed")
    if options.attempt_hook:
        options.attempt_hook(point, attempt, number)
    return attempt


def _spoil(attempt: dict[str, Any], code: str, reason: str) -> None:
    attempt["quantities"] = {}
    for key in ("elapsed_ns", "operations", "bytes", "cpu", "executions", "verified", "warmup"):
        attempt[key] = None
    attempt |= {"status": "failed", "reason_code": code, "reason": reason, "checks": []}


def _record(
    options: Options, launch: dict[str, Any], by_id: Mapping[str, dict[str, Any]], campaign: str
) -> dict[str, Any]:
    subject = launch["subject"]
    layer, place, wait = str(subject["layer"]), str(subject["place"]), str(subject["wait"])
    number = int(str(launch["round"]))
    rng = random.Random(f"{options.seed}/{launch['launch_id']}")
    drift = random.Random(f"{options.seed}/{place}/{number}").gauss(0, 0.02)
    skew = math.exp(drift + rng.gauss(0, 0.008))
    point_ids = launch["point_ids"]
    assert isinstance(point_ids, list | tuple)
    points = [by_id[str(item)] for item in point_ids]
    attempts = [_attempt(options, point, order, number, rng, skew) for order, point in enumerate(points)]
    unsound = options.troubles and (layer, place, wait, number) == ("native-ucx", "within", "poll", 3)
    style, _, substrate = layer.partition("-")
    hosts = ["h1", "h2"] if place == "between" else ["h1", "h1"]
    launch_file = {
        "schema": "cadge.launch/2",
        "campaign_id": campaign,
        **{key: launch[key] for key in ("launch_id", "seed", "deadline_ms", "launcher", "epoch") if key in launch},
        **{key: value for key, value in subject.items() if key != "twin"},
        "ports": [18600, 18699],
        "endpoints": [
            {
                "role": seat["role"],
                "host": seat["host"],
                "cpus": [cpu],
                "device": "data0",
                "address": f"198.19.0.1{cpu + 1}",
                "raw_device": "raw0",
                "peers": seat["peers"],
            }
            for cpu, seat in enumerate(launch["endpoints"])
        ],
        "patterns": {},
        "points": [],
    }
    semantics = {"message": "cadge" if style == "rdma" else "library", "put": "direct" if style == "rdma" else "none"}
    result = {
        "schema": "cadge.result/2",
        **{key: launch[key] for key in ("launch_id", "seed")},
        **{key: subject[key] for key in ("kind", "layer", "place", "wait")},
        "status": "done",
        "driver": {"version": "0.2.0", "abi": 1, "revision": "1f3a9c2e", "compiler": "gcc 12.2.0"},
        "started_utc": f"2026-11-21T03:{12 + number:02d}:05.123456Z",
        "wall_ns": 900_000_000,
        "phases_ns": {"open": 3_000_000, "measure": 700_000_000},
        "library": library(layer),
        "adapter": {
            "name": layer,
            "style": style,
            "substrate": substrate,
            "file": f"build/layers/{layer}.so",
            "rpc": "emulated",
            "caps": ["RELIABLE"],
            "semantics": semantics,
        },
        "limits": {"message_bytes_max": 1 << 24, "depth_max": 128, "short_bytes_max": 8192 if "u" in layer else 0},
        "path": [
            {
                "medium": "network" if place == "between" else "memory",
                "as_asked": True,
                "asked": "data0",
                "used": used(layer, place),
                "device": "data0",
            }
        ]
        * 2,
        "clock": [
            {
                "source": "tsc",
                "hz": 2_400_000_000,
                "read_cost_ns": 14.0,
                "drift_ppm": 0.4,
                "bracket_ns": 41.0,
                "step_ns": options.clock_step_ns,
                "ok": True,
            }
        ]
        * 2,
        "pinning": [{"asked": cpu, "actual": [cpu], "ok": True} for cpu in (0, 1)],
        "endpoints": [
            {"host": host, "pid": 100 + i, "kernel": "6.18.5", "role": options.roles[i]} for i, host in enumerate(hosts)
        ],
        "checks": [
            {
                "name": "path",
                "ok": not unsound,
                "detail": "asked for posix/memory, ran tcp/lo" if unsound else "",
            }
        ],
        "attempts": attempts,
    }
    return {
        "schema": "cadge.launch-record/2",
        "launch": launch_file,
        "result": result,
        "status": "done",
        "load": [{"host": hosts[0], "loadavg": 1.9, "steal_ns": 1_200_000}],
        "shared_memory": [
            {"host": name, "kind": "folder", "why": "no namespaces", "variables": {"UCX_POSIX_DIR": "/dev/shm/c"}}
            for name in hosts
        ],
        "environment": [
            {"host": name, "variables": {"HOME": "/tmp/c/home", "LD_LIBRARY_PATH": "/opt/ucx/lib", "PATH": "/bin"}}
            for name in hosts
        ],
        "exit_codes": [0, 0],
        "agent_version": "0.2.0",
    }


def make(root: Path, options: Options | None = None) -> Campaign:
    """Write a campaign under `root` and return it for reading; what the same options gave before is copied."""
    options = options or Options()
    hook = options.attempt_hook
    if "<l" in getattr(options.lost, "__qualname__", "<l") + getattr(hook, "__qualname__", "<l" if hook else ""):
        return _make(root, options)  # one of a single test
    key = (repr(replace(options, attempt_hook=None, lost=never)), hook, options.lost)
    if key not in _MADE:
        _MADE[key] = _make(Path(_FOLDER.name) / str(len(_MADE)), options).path
    return Campaign(Path(shutil.copytree(_MADE[key], root / _MADE[key].name, symlinks=True)))


def _make(root: Path, options: Options) -> Campaign:
    plan = _plan(options)
    name = campaign_id(CREATED, plan.plan_hash)
    meta = CampaignMeta.from_object(
        {
            "schema": "cadge.campaign/1",
            "campaign_id": name,
            "created_utc": "2026-11-21T03:12:04Z",
            "status": "running",
            "sweep": "default",
            "testbed": {"name": "emulated", "kind": "emulated", "hosts": ["h1", "h2"]},
            "seed": options.seed,
            "plan_hash": plan.plan_hash,
            "tool": {"version": "0.2.0", "revision": "1f3a9c2e5b70", "dirty": False},
            "command": ["cadge", "run", "--sweep", "default"],
            "planned": {
                "points": len(plan.points),
                "attempts": sum(len(launch.point_ids) for launch in plan.launches),
                "launches": len(plan.launches),
                "wall_s": 212.0,
            },
        },
        source="synthetic meta",
    )
    planned = {point.point_id: point.workload.model_dump(mode="json") for point in plan.points}
    by_id = {name: {**one, "workload": planned[name]} for one in _points(options) for name in [str(one["point_id"])]}
    with CampaignWriter.create(root, meta=meta, plan=plan, sweep_text="schema: cadge.sweep/2\n") as writer:
        for host in ("h1", "h2"):
            facts = {**node(host, virtual=options.virtual), **options.node}
            writer.add_node(NodeFacts.from_object(facts, source=host))
        launches = plan.launches[: len(plan.launches) - options.drop_launches]
        for launch in launches:
            raw = launch.model_dump(mode="json", by_alias=True)
            if options.lost(raw):
                continue
            record = _record(options, raw, by_id, name)
            if options.aged:
                _age_record(record)
            writer.add_launch(LaunchRecord.from_object(record, source=launch.launch_id))
        status = "finished" if options.status == "finished" else "interrupted"
        writer.finish(status, at=datetime(2026, 11, 21, 3, 16, 40, tzinfo=UTC))
        return writer.campaign
