from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.quantities import UnitMissing, bytes_text, parse_bytes, parse_seconds, seconds_text


def test_sizes_have_units() -> None:
    sizes = [parse_bytes(text) for text in ("256MiB", "1 GB", "17B", "2kib", "1.5KiB", " 3b ")]
    assert sizes == [256 << 20, 10**9, 17, 2048, 1536, 3]


def test_durations_have_units() -> None:
    durations = [parse_seconds(text) for text in ("500ms", "5m", "3s", "1.5h", "2D", "4min")]
    assert durations == [0.5, 300, 3, 5400, 172_800, 240]


@pytest.mark.parametrize("zero", [0, 0.0, "0", " 0 ", "0.0", "0s", "0B"])
def test_zero_needs_no_unit(zero: object) -> None:
    assert zero == "0B" or parse_seconds(zero) == 0.0
    assert zero == "0s" or parse_bytes(zero) == 0


@pytest.mark.parametrize(
    ("value", "seconds", "size"),
    [(90, "90s", "90B"), ("90", "90s", "90B"), (300.0, "5m", "300B"), ("1.5", "1.5s", "1B"), (2048, "2048s", "2KiB")],
)
def test_a_number_alone_is_refused_with_what_it_meant(value: object, seconds: str, size: str) -> None:
    with pytest.raises(UnitMissing, match=f"has no unit: {seconds} is what it meant until now") as duration:
        parse_seconds(value)
    assert duration.value.former == seconds
    with pytest.raises(UnitMissing) as number:
        parse_bytes(value)
    assert number.value.former == size
    assert str(pickle.loads(pickle.dumps(number.value))) == str(number.value)


@pytest.mark.parametrize(
    "value", ["soon", "", "-5s", "5 5s", "5y", True, None, [], float("nan"), float("inf"), -3, "٣d"]
)
def test_other_values_are_neither(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration: write for example '5m' \(units: ms, s, m, min, h, d\)"):
        parse_seconds(value)
    with pytest.raises(ValueError, match="is not a size"):
        parse_bytes(value)


def test_an_upper_case_m_is_no_duration() -> None:
    with pytest.raises(ValueError, match="'6M' may mean minutes or months: write 6min, or days such as 30d"):
        parse_seconds("6M")


@given(
    st.integers(0, 2**62) | st.builds(lambda number, power: number << power, st.integers(0, 2000), st.integers(0, 50))
)
def test_sizes_are_written_as_they_are_read(number: int) -> None:
    assert parse_bytes(bytes_text(number)) == number


@given(st.floats(0, 1e12) | st.integers(0, 10**9).map(float) | st.integers(0, 10**6).map(lambda days: days * 86400.0))
def test_durations_are_written_as_they_are_read(number: float) -> None:
    assert parse_seconds(seconds_text(number)) == number


def test_texts_have_units() -> None:
    assert [bytes_text(number) for number in (0, 1000, 1 << 20, 3 << 30)] == ["0B", "1000B", "1MiB", "3GiB"]
    assert [seconds_text(number) for number in (0, 0.1, 90, 300, 1_234_567, 86_400)] == [
        "0s",
        "0.1s",
        "90s",
        "5m",
        "1234567s",
        "1d",
    ]
