# SPDX-License-Identifier: BSD-3-Clause
"""Every conversion and every number format of the report.

Stored quantities are integer nanoseconds and bytes. Shown are microseconds, MB/s (10^6 bytes a second) and binary
sizes (KiB, MiB), with three significant digits, one unit in a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal

NS_PER_US = 1_000
NS_PER_S = 1_000_000_000
KIB = 1024
MIB = 1024 * 1024
THIN = "\u202f"  # narrow no-break space: groups thousands, never breaks a line
PAIRS_DISAGREE = "pairs disagree"
"""Said of a median of paired ratios that both medians beside it contradict."""
TIMES = "\u00d7"
MISSING = "\u2013"
MINUS = "\u2212"
_DIGITS = 3
_KNOWN = 12
"""Digits of a value that mean something: 2905 / 1000 and 2905 * 0.001 differ in the sixteenth, and are one number."""
_SMALLEST = Decimal("0.0001")


def grouped(number: int) -> str:
    """Return an integer with its thousands set apart by a thin space, as 12 345."""
    return f"{number:,}".replace(",", THIN).replace("-", MINUS)


def sig3(value: float) -> str:
    """Return a number with three significant digits, without exponent, thousands set apart.

    Zero is "0"; what is smaller than 0.0001 is shown as "<0.0001": a true zero and a small number stay apart.
    """
    if value == 0:
        return "0"
    exact = Decimal(f"{float(value):.{_KNOWN}g}")
    if abs(exact) < _SMALLEST:
        return f"<{_SMALLEST}" if exact > 0 else f"{MINUS}<{_SMALLEST}"
    last = exact.adjusted() - (_DIGITS - 1)
    rounded = exact.quantize(Decimal(1).scaleb(last), rounding=ROUND_HALF_EVEN)
    if rounded.adjusted() > exact.adjusted():  # 9.996 became 10.00: one digit less behind the point
        rounded = exact.quantize(Decimal(1).scaleb(last + 1), rounding=ROUND_HALF_EVEN)
    if rounded == rounded.to_integral_value():
        text = f"{int(rounded):,}" if last >= 0 else f"{rounded:,f}"
    else:
        text = f"{rounded:,f}"
    return text.replace(",", THIN).replace("-", MINUS)


def raw(*values: float | None) -> str:
    """Return numbers for programs, parted by spaces: whole ones exactly, others to eight digits."""
    return " ".join(
        f"{int(value)}" if float(value).is_integer() else f"{value:.8g}" for value in values if value is not None
    )


def us(value_ns: float) -> str:
    """Return nanoseconds as microseconds with three significant digits, without the unit."""
    return sig3(value_ns / NS_PER_US)


def size(count: int) -> str:
    """Return a size in bytes as 8 B, 4 KiB, 1 MiB; exactly, never rounded."""
    if count and count % MIB == 0:
        return f"{grouped(count // MIB)} MiB"
    if count and count % KIB == 0:
        return f"{grouped(count // KIB)} KiB"
    return f"{grouped(count)} B"


def mb_per_s(total_bytes: int, total_ns: int) -> float:
    """Return a rate in MB/s (10^6 bytes a second) from total bytes and total nanoseconds (positive)."""
    return total_bytes * NS_PER_US / total_ns


def per_second(operations: int, total_ns: int) -> float:
    """Return operations a second from their number and total nanoseconds (positive)."""
    return operations * NS_PER_S / total_ns


def percent(share: float, digits: int = 1) -> str:
    """Return a share of one as a percentage, 0.96875 as "96.9 %"."""
    text = f"{share * 100:.{digits}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")  # nothing is not below nothing
    return f"{text}{THIN}%"


def part(share: float) -> str:
    """Return a share of one as a whole percentage; below 1 % with one decimal, as 0.7 % is no 1 %."""
    return percent(share, 1 if 0 < abs(share) < 0.01 else 0)


def percent_beyond(share: float, bound: float) -> str:
    """Return a share as a percentage with as many digits as tell it from a bound that it lies beyond."""
    return next(
        (text for digits in range(3) if (text := percent(share, digits)) != percent(bound, digits)), percent(share, 3)
    )


def times(ratio: float) -> str:
    """Return a ratio as 1.18 and the multiplication sign (three significant digits)."""
    return f"{sig3(ratio)}{TIMES}"


def interval(low: str, high: str) -> str:
    """Return two formatted ends as [low, high], with the space that does not break."""
    return f"[{low},\u00a0{high}]"


def ends(low: float | None, high: float | None, scale: float = 1.0, say: Callable[[float], str] = sig3) -> str:
    """Return the interval that stands behind a value, as " [low, high]"; "" where there is none."""
    return "" if low is None or high is None else f" {interval(say(low * scale), say(high * scale))}"


NO_BOUND = 1000.0
"""Ends of a ratio's interval that lie so many times apart bound nothing."""


def ratio_interval(low: float, high: float, say: Callable[[float], str] = sig3) -> str:
    """Return the interval of a ratio as [low, high]; "no bound" for ends that are too far away to be one."""
    if high < NO_BOUND * low:
        return interval(say(low), say(high))
    if low <= 1 <= high:
        return "no bound"
    return interval(say(low), "no bound") if low > 1 else interval("no bound", say(high))


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """Return "1 launch", "6 launches": the number and the right form of its noun."""
    return f"{grouped(number)} {noun if number == 1 else plural or noun + 's'}"


def listing(names: Sequence[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def day(moment: datetime) -> str:
    """Return a date for people, as 21 November 2026 (UTC)."""
    local = moment.astimezone(UTC)
    return f"{local.day} {local:%B %Y}"


def clock_time(moment: datetime) -> str:
    """Return hours, minutes and seconds in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"


def duration(seconds: float) -> str:
    """Return seconds for people: 12 s, 4 min 36 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
