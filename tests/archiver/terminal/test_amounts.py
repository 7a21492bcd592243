"""Numbers as people read them."""

from __future__ import annotations

import re

import pytest

from archiver.terminal.amounts import age, clock_time, counted, duration, rates, share, size


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (counted(0, "record"), "0 records"),
        (counted(1, "record"), "1 record"),
        (counted(6_000, "record"), "6,000 records"),
        (counted(2, "entry", "entries"), "2 entries"),
        (size(812), "812 B"),
        (size(31_000), "31.0 kB"),
        (size(84_250_000), "84.2 MB"),
        (size(3 * 10**12), "3.0 TB"),
        (share(0), "0 %"),
        (share(1e-9), "< 0.01 %"),
        (share(0.125), "12.50 %"),
        (duration(0.42), "0.4 s"),
        (duration(125), "2 min 5 s"),
        (duration(3_900), "1 h 5 min"),
        (rates(585_044, 84_250_000, 12.3), "47,565 records/s, 6.8 MB/s"),
        (rates(0, 0, 12.3), ""),
        (rates(1, 200, 30.0), ""),
        (rates(1, 200, 0.0), ""),
    ],
)
def test_amounts(made: str, text: str) -> None:
    assert made == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.4, "0 s"), (119.0, "119 s"), (150.0, "2.5 min"), (7_300.0, "2.0 h"), (2e6, "23.1 d")],
)
def test_ages_are_as_people_say_them(seconds: float | None, text: str) -> None:
    assert age(seconds) == text


def test_the_clock() -> None:
    assert re.fullmatch(r"\d\d:\d\d:\d\d", clock_time())
