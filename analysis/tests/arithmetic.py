# SPDX-License-Identifier: BSD-3-Clause
"""The checker's own arithmetic and formats. Nothing of cadge_analysis is imported here."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from statistics import median

THIN, NBSP, DASH, TIMES = "\u202f", "\u00a0", "\u2013", "\u00d7"


def show(value: float) -> str:
    """Three significant digits without exponent, by rules of decimal's own."""
    if value == 0:
        return "0"
    number = Decimal(repr(float(value)))
    if abs(number) < Decimal("0.0001"):
        return ("\u2212" if number < 0 else "") + "<0.0001"
    rounded = Context(prec=3, rounding=ROUND_HALF_EVEN).plus(number)
    places = max(0, 2 - rounded.adjusted())
    return f"{rounded:,.{places}f}".replace(",", THIN).replace("-", "\u2212")


def spread(values: list[float]) -> tuple[list[float], float]:
    """Return [median, low, high] (or the median alone) and the coverage of the order-statistic interval."""
    n = len(values)
    if n == 1:
        return [values[0]], 0.0
    ordered = sorted(values)

    def coverage(rank: int) -> float:
        return 1 - 2 * sum(math.comb(n, k) for k in range(rank)) / 2**n

    rank = max((r for r in range(1, n // 2 + 1) if coverage(r) >= 0.95), default=1)
    return [median(ordered), ordered[rank - 1], ordered[n - rank]], coverage(rank)


def paired_spread(values: list[float]) -> tuple[list[float], float]:
    """Return what `spread` does of paired differences: from their Walsh averages, by the signed rank."""
    n = len(values)
    walsh = sorted((a + b) / 2 for at, a in enumerate(values) for b in values[at:])
    if n == 1:
        return [values[0]], 0.0
    sums = [1]
    for rank in range(1, n + 1):
        sums = [
            (sums[at] if at < len(sums) else 0) + (sums[at - rank] if at >= rank else 0)
            for at in range(len(sums) + rank)
        ]

    def coverage(cut: int) -> float:
        return 1 - 2 * sum(sums[: cut + 1]) / 2**n

    cut = max((one for one in range(len(walsh) // 2) if coverage(one) >= 0.95), default=0)
    return [median(walsh), walsh[cut], walsh[-1 - cut]], coverage(cut)


def ratio_spread(ratios: list[float]) -> tuple[list[float], float]:
    """Return the same of paired ratios."""
    numbers, covered = paired_spread([math.log(one) for one in ratios])
    return [math.exp(one) for one in numbers], covered


def interval(numbers: list[float], scale: float) -> list[str]:
    if len(numbers) == 1:
        return ["1 launch, no interval"]
    return [f"[{show(numbers[1] * scale)},{NBSP}{show(numbers[2] * scale)}]"]


def sizes_text(count: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"
