# SPDX-License-Identifier: BSD-3-Clause
"""Number formats: three significant digits, one unit, never an exponent."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadge_analysis import units

THIN = "\u202f"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.206, "0.206"),
        (0.20649, "0.206"),
        (1.0, "1.00"),
        (9.996, "10.0"),
        (99.95, "100"),
        (99.94, "99.9"),
        (123.4, "123"),
        (999.6, f"1{THIN}000"),
        (1234.0, f"1{THIN}230"),
        (123456.0, f"123{THIN}000"),
        (0.00012345, "0.000123"),
        (0.00001, "<0.0001"),
        (-0.00001, "\u2212<0.0001"),
        (-12.345, "\u221212.3"),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert units.sig3(value) == text


@given(st.floats(1e-4, 1e12))
def test_what_is_shown_is_within_half_a_percent(value: float) -> None:
    shown = Decimal(units.sig3(value).replace(THIN, ""))
    assert abs(shown - Decimal(value)) <= Decimal(value) * Decimal("0.00501")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1000, f"1{THIN}000 B"),
        (1023, f"1{THIN}023 B"),
        (1024, "1 KiB"),
        (1025, f"1{THIN}025 B"),
        (1536, f"1{THIN}536 B"),
        (65536, "64 KiB"),
        (1048576, "1 MiB"),
        (4194304, "4 MiB"),
    ],
)
def test_sizes_are_exact(count: int, text: str) -> None:
    assert units.size(count) == text


def test_rates_are_work_over_time() -> None:
    assert units.mb_per_s(1_000_000, 1_000_000_000) == 1.0
    assert units.per_second(5, 2_000_000_000) == 2.5


def test_words() -> None:
    assert units.count_of(1, "launch", "launches") == "1 launch"
    assert units.count_of(6, "launch", "launches") == "6 launches"
    assert units.duration(59.6) == "1 min 0 s"
    assert units.duration(276) == "4 min 36 s"
    assert units.duration(7500) == "2 h 5 min"
    assert units.day(datetime(2026, 11, 1, tzinfo=UTC)) == "1 November 2026"
    assert units.percent(0.96875) == f"96.9{THIN}%"
    assert units.interval("1", "2") == "[1,\u00a02]"


def test_a_value_is_one_number_however_it_was_scaled() -> None:
    assert 2905 * 0.001 != 2905 / 1000
    assert units.sig3(2905 * 0.001) == units.sig3(2905 / 1000) == units.us(2905)


@pytest.mark.parametrize(
    ("share", "text"), [(39 / 5365, "0.7"), (0.0099, "1.0"), (0.01, "1"), (0.154, "15"), (0.0, "0"), (1.0, "100")]
)
def test_what_is_less_than_a_percent_is_no_percent(share: float, text: str) -> None:
    assert units.part(share) == f"{text}{THIN}%"


@pytest.mark.parametrize(
    ("share", "text"), [(0.3, "30"), (0.203, "20.3"), (0.2004, "20.04"), (0.200004, "20.000"), (0.194, "19")]
)
def test_what_lies_beyond_a_bound_is_not_shown_as_the_bound(share: float, text: str) -> None:
    assert units.percent_beyond(share, 0.2) == f"{text}{THIN}%"


def test_nothing_has_no_sign() -> None:
    assert units.percent(-0.004, 0) == f"0{THIN}%"
    assert units.percent(-0.006, 0) == f"-1{THIN}%"
