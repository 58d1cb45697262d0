# SPDX-License-Identifier: BSD-3-Clause
"""What the Peregrine engine aims at, a line each: the aim, what was measured, its interval, and whether it is met.

The engine's own readings come from files that pgr-floors keeps (--engine, --sizes); where there is none it is measured
first, as many rounds. What goes through the contract is measured here: null calls and calls of 8 bytes beside the
engine's own in the same round; calls of 8 B to 4 MiB, data written before and read after each message, of
peregrine-shm and of every other layer within a host, in random order in each round. After a few rounds layers that are
far behind the fastest other one at every size are left out.

Every figure is taken within a round; shown is the median over rounds with its rank interval of at least 95 %. An aim is
met where the median meets it, and where it also bounds the interval's upper end, that as well. An aim that depends on
the machine is computed from the same rounds.

Usage: aims.py [--engine FILE] [--sizes FILE] [--rounds N] [--seed N] [--json]
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import native
import ours
from tax import rank_interval

from cadge_results.formats.histogram import decode

BENCH = ours.ROOT / "build/bench/pgr-floors"
OURS = "peregrine-shm"
SIZES = [2**power for power in range(3, 23)]
PART_BYTES = 32768
SCREENING_ROUNDS = 3
FAR = 1.5
"""A layer that is nowhere within so many times the fastest other one is not measured further."""
KIB = 1024

Values = list[float]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One aim. Median, low and high are of what the aim bounds; missed says by how much, empty: it is met."""

    name: str
    aim: str
    measured: str = ""
    median: float | None = None
    low: float | None = None
    high: float | None = None
    missed: str = ""
    problem: str = ""


def at_most(name: str, values: Values, most: float, measured: str, *, upper: float = 0, unit: str = "") -> Line:
    """Return a line of values whose median is to be at most so much, and the upper end of its interval `upper`."""
    middle, (low, high, _) = statistics.median(values), rank_interval(values)
    missed = [f"{middle - most:.3g}{unit}"] if middle > most else []
    missed += [f"{high - upper:.3g}{unit} at the upper end"] if upper and high > upper else []
    bound = f", upper end <= {upper:g}" if upper else ""
    return Line(
        name=name,
        aim=f"<= {most:g}{unit}{bound}",
        measured=measured,
        median=middle,
        low=low,
        high=high,
        missed=" and ".join(missed),
    )


def at_least(name: str, values: Values, least: float, measured: str, aim: str = "") -> Line:
    """Return a line of values whose median is to be at least so much."""
    middle, (low, high, _) = statistics.median(values), rank_interval(values)
    missed = f"{least - middle:.3g}" if middle < least else ""
    return Line(
        name=name, aim=aim or f">= {least:g}", measured=measured, median=middle, low=low, high=high, missed=missed
    )


def ratios(values: Values, of: Values) -> Values:
    """Return the ratio in each round."""
    return [one / other for one, other in zip(values, of, strict=True)]


def ns(values: Values) -> str:
    """Return a time as people write it."""
    return f"{statistics.median(values):.0f} ns"


def rate(values: Values) -> str:
    """Return bytes a ns as people write it."""
    return f"{statistics.median(values):.2f} GB/s"


# ---- the engine's own readings ----


class Engine:
    """Readings of pgr-floors, a value a round each."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        readings = json.loads(path.read_text(encoding="utf-8"))["readings"]
        self.values: dict[str, Values] = {item["name"]: item["values"] for item in readings}

    def has(self, *names: str) -> bool:
        """Say whether this machine could take all of them."""
        return all(name in self.values for name in names)

    def compared(self, name: str, aim: str, *readings: str) -> Line | None:
        """Return a line that says why there is no figure, where one is missing."""
        missing = [one for one in readings if one not in self.values]
        return Line(name=name, aim=aim, problem=f"no reading of {', '.join(missing)}") if missing else None


def measure_engine(path: Path, options: Sequence[str], rounds: int) -> None:
    """Let pgr-floors fill the file, unless it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [BENCH, *options, "--keep", path, str(rounds)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # takes minutes


def small_on_shm(engine: Engine) -> list[Line]:
    """Null and 8 B beside a bare ring of one line."""
    lines = []
    for reading in ("shm null", "shm 8 B"):
        name, aim = f"{reading} / bare one-line ring", "<= 1.1, or + 50 ns"
        missing = engine.compared(name, aim, reading, "bare one-line ring", "two lines")
        if missing:
            lines.append(missing)
            continue
        mine, ring = engine.values[reading], engine.values["bare one-line ring"]
        over = statistics.median(one - max(1.1 * bare, bare + 50) for one, bare in zip(mine, ring, strict=True))
        found = ratios(mine, ring)
        low, high, _ = rank_interval(found)
        more = statistics.median(one - bare for one, bare in zip(mine, ring, strict=True))
        lines.append(
            Line(
                name=name,
                aim=aim,
                measured=f"{ns(mine)}, ring {ns(ring)} ({more:+.0f} ns), two lines {ns(engine.values['two lines'])}",
                median=statistics.median(found),
                low=low,
                high=high,
                missed=f"{over:.0f} ns" if over > 0 else "",
            )
        )
    return lines


def by_size(path: Path) -> list[Line]:
    """8 B to 16 MiB beside the best bare ring."""
    return [
        at_most(
            f"{size(item['bytes'])} on shm / best bare ring",
            ratios(item["engine"], item["ring"]),
            1.10 if item["bytes"] <= KIB else 1.15,
            f"{ns(item['engine'])}, parts of {item['part']} B {ns(item['ring'])}",
        )
        for item in json.loads(path.read_text(encoding="utf-8"))["sizes"]
    ]


def aimed_rate(two_lines_ns: float) -> float:
    """Return the calls a second that are aimed at where two lines take so long."""
    return 12e6 - 3e6 * min(max((two_lines_ns - 250) / 100, 0), 1)


def outstanding(engine: Engine) -> Line:
    """Null calls a second with 64 outstanding."""
    name = "shm, 64 outstanding / what two lines allow"
    missing = engine.compared(name, ">= 1", "shm rate, 64 outstanding", "two lines")
    if missing:
        return missing
    found, lines = engine.values["shm rate, 64 outstanding"], engine.values["two lines"]
    aimed = [aimed_rate(one) for one in lines]
    least = statistics.median(aimed) / 1e6
    measured = f"{statistics.median(found) / 1e6:.2f} M/s, two lines {ns(lines)}"
    return at_least(name, ratios(found, aimed), 1, measured, f">= {least:.2f} M/s")


def streams_and_datagrams(engine: Engine) -> list[Line]:
    """Xdp and udp beside bare frames and datagrams."""
    lines = []
    for reading, bare, bound, lowest in (
        ("xdp null", "raw frame", 1.15, False),
        ("xdp 4 MiB", "raw frame stream, touched", 0.95, True),
        ("udp null", "connected udp", 1.08, False),
        ("udp 4 MiB", "raw udp stream", 1.0, True),
        ("udp 4 MiB between hosts", "raw udp stream between hosts", 1.0, True),
    ):
        name = f"{reading} / {bare}"
        missing = engine.compared(name, f"{'>=' if lowest else '<='} {bound:g}", reading, bare)
        if missing:
            lines.append(missing)
            continue
        mine, theirs = engine.values[reading], engine.values[bare]
        if lowest:
            lines.append(at_least(name, ratios(mine, theirs), bound, f"{rate(mine)}, bare {rate(theirs)}"))
        else:
            lines.append(at_most(name, ratios(mine, theirs), bound, f"{ns(mine)}, bare {ns(theirs)}"))
    return lines


def beside_a_long_call(engine: Engine) -> list[Line]:
    """Null calls on a binding that carries calls of 16 MiB."""
    lines = []
    for wire in ("udp", "shm"):
        beside, idle, alone = f"null beside 16 MiB, {wire}", f"{wire} null", f"16 MiB alone, {wire}"
        carried, tail = f"16 MiB beside null, {wire}", f"null beside 16 MiB, {wire}, p99"
        aim = "<= 10" if wire == "udp" else "<= 32 KiB"
        missing = engine.compared(beside, aim, beside, idle, alone, carried, tail)
        if missing:
            lines.append(missing)
            continue
        found = engine.values
        times, kept = ratios(found[beside], found[idle]), ratios(found[carried], found[alone])
        measured = f"{ns(found[beside])}, p99 {ns(found[tail])}, idle {ns(found[idle])}"
        rates = f"{rate(found[carried])}, alone {rate(found[alone])}"
        if wire == "udp":
            lines.append(at_most(f"{beside} / idle", times, 10, measured))
            lines.append(at_least("16 MiB beside null, udp / alone", kept, 0.8, rates))
            continue
        ahead = [
            (one - still) * speed / KIB
            for one, still, speed in zip(found[beside], found[idle], found[alone], strict=True)
        ]
        whole = f"{measured}; the long call {rates}"
        lines.append(at_most("ahead of a null call beside 16 MiB, shm", ahead, PART_BYTES / KIB, whole, unit=" KiB"))
    return lines


# ---- through the contract ----


def size(count: int) -> str:
    """Return bytes as people write them."""
    for unit, of in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= of:
            return f"{count / of:g} {unit}"
    return f"{count} B"


def all_layers() -> list[str]:
    """Return ours and the other layers that were built and have two endpoints within a host."""
    names = sorted(path.stem for path in ours.MODULES.glob("*.so"))
    return [OURS, *(name for name in names if not name.startswith(("shim-", "null-", "peregrine-")))]


def launch(layer: str, points: list[dict[str, object]], port: int) -> list[float | None]:
    """Return the median call of each point in ns; None where the layer refuses it."""
    launcher = "mpirun" if layer.startswith("mpi") else "direct"
    document = ours.launch_document(layer, "within", {}, points, launcher)
    attempts = ours.run(document, port, some=True)
    return [float(decode(ours.latency(one)["histogram"]).percentile(50)) if one else None for one in attempts]


def engine_ns(reading: str) -> float:
    """Return a reading of the engine's own, taken now."""
    done = subprocess.run([BENCH, "--json", "1", reading], capture_output=True, text=True, timeout=60, check=True)
    return float(next(item["median"] for item in json.loads(done.stdout)["readings"] if item["name"] == reading))


class Contract:
    """What goes through contract and driver, a value a round."""

    def __init__(self, seed: int) -> None:
        """Nothing was measured yet."""
        self.order = random.Random(seed)  # noqa: S311 - order of measurement, not a secret
        self.small: dict[str, list[tuple[float, float]]] = {"shm null": [], "shm 8 B": []}
        self.calls: dict[str, dict[int, dict[int, float]]] = {name: {one: {} for one in SIZES} for name in all_layers()}
        self.rivals = [name for name in self.calls if name != OURS]
        self.problems: dict[str, str] = {}
        self.port = 18500

    def next_port(self) -> int:
        """Return one that was not used lately."""
        self.port = 18500 + (self.port - 18499) % 150
        return self.port

    def small_round(self) -> None:
        """Take small calls, of the engine itself and through the contract."""
        for reading, found in self.small.items():
            count = 8 if reading == "shm 8 B" else 0
            point = ours.point("rpc", 300, request_bytes=count, reply_bytes=0)
            engine_first = self.order.random() < 0.5
            try:
                engine = engine_ns(reading) if engine_first else None
                (through,) = launch(OURS, [point], self.next_port())
                if through is not None:
                    found.append((engine or engine_ns(reading), through))
            except (ours.LaunchError, OSError, subprocess.SubprocessError) as error:
                self.problems[reading] = str(error)

    def sizes_round(self, number: int) -> None:
        """Take calls of all sizes over our layer and its rivals."""
        layers = [OURS, *self.rivals]
        for layer in self.order.sample(layers, len(layers)):
            sizes = self.order.sample(SIZES, len(SIZES))
            points = [
                ours.point("rpc", 40 if one <= 65536 else 80, request_bytes=one, touch="write+read") for one in sizes
            ]
            try:
                found = launch(layer, points, self.next_port())
            except (ours.LaunchError, native.ToolError, OSError) as error:
                self.problems[layer] = str(error)
                continue
            for one, median_ns in zip(sizes, found, strict=True):
                if median_ns is not None:
                    self.calls[layer][one][number] = median_ns

    def usual(self, layer: str, one: int) -> float:
        """Return the median over rounds; infinity where there is none."""
        values = self.calls[layer][one].values()
        return statistics.median(values) if values else float("inf")

    def near(self) -> list[str]:
        """Return the rivals that are not far from the fastest of them at one size at least."""
        best = {one: min((self.usual(layer, one) for layer in self.rivals), default=0) for one in SIZES}
        return [layer for layer in self.rivals if any(self.usual(layer, one) <= FAR * best[one] for one in SIZES)]

    def measure(self, rounds: int) -> None:
        """Take all rounds."""
        for number in range(rounds):
            if number == SCREENING_ROUNDS:
                self.rivals = self.near()
                print(f"after {number} rounds beside {', '.join(self.rivals)} alone", file=sys.stderr)
            self.small_round()
            self.sizes_round(number)
            print(f"round {number + 1} of {rounds}", file=sys.stderr)

    def small_lines(self) -> list[Line]:
        """Return what the contract adds to small calls."""
        lines = []
        for reading, pairs in self.small.items():
            name = f"{reading} through the contract, more"
            if not pairs:
                problem = self.problems.get(reading, "")
                lines.append(Line(name=name, aim="<= 60 ns", problem=problem or "not measured"))
                continue
            engine, through = (list(column) for column in zip(*pairs, strict=True))
            more = [two - one for one, two in pairs]
            lines.append(at_most(name, more, 60, f"{ns(through)}, the engine {ns(engine)}", unit=" ns"))
        return lines

    def size_lines(self) -> list[Line]:
        """Return the contract's calls beside the fastest other layer's."""
        lines = []
        for one in SIZES:
            mine = self.calls[OURS][one]
            name = f"{size(one)} through the contract / the fastest other layer"
            most, upper = (0.9, 0.0) if one <= KIB else (1.0, 1.05)
            best = min(self.rivals, key=lambda layer, one=one: self.usual(layer, one), default=OURS)
            pairs = [(mine[number], theirs) for number, theirs in self.calls[best][one].items() if number in mine]
            if best == OURS or not pairs:
                problems = "; ".join(f"{layer}: {why}" for layer, why in self.problems.items())
                lines.append(Line(name=name, aim=f"<= {most:g}", problem=problems or "no other layer was built"))
                continue
            measured = f"{self.usual(OURS, one) / 1e3:.3f} us, {best} {self.usual(best, one) / 1e3:.3f} us"
            lines.append(at_most(name, [a / b for a, b in pairs], most, measured, upper=upper))
        return lines


# ---- telling it ----


def shown(line: Line) -> str:
    """Return a line as people read it."""
    head = f"{line.name:58} {line.aim:>24}"
    if line.problem:
        return f"{head}   not measured: {line.problem}"
    verdict = f"missed by {line.missed}" if line.missed else "met"
    return f"{head} {line.median:8.3f} [{line.low:.3f}, {line.high:.3f}]  {verdict}  ({line.measured})"


def main() -> int:
    """Print table B; exit 1 where something could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", type=Path, default=ours.ROOT / "build/bench/engine.json")
    parser.add_argument("--sizes", type=Path, default=ours.ROOT / "build/bench/sizes.json")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        measure_engine(options.engine, [], options.rounds)
        measure_engine(options.sizes, ["--sizes"], options.rounds)
    except (OSError, subprocess.SubprocessError) as error:
        parser.error(f"{error}; build it with: make bench")
    engine, contract = Engine(options.engine), Contract(options.seed)
    contract.measure(options.rounds)
    lines = [
        *small_on_shm(engine),
        *contract.small_lines(),
        *by_size(options.sizes),
        *contract.size_lines(),
        outstanding(engine),
        *streams_and_datagrams(engine),
        *beside_a_long_call(engine),
    ]
    if options.json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
    else:
        for line in lines:
            print(shown(line))
        for layer, problem in contract.problems.items():
            print(f"left out: {layer}: {problem}")
    return 1 if any(line.problem for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
