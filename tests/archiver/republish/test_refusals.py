"""Records that a target will refuse."""

from __future__ import annotations

import random
from typing import Any

import pytest

from archiver.codecs import Codec
from archiver.errors import ConfigError
from archiver.records.selection import Selection
from archiver.republish.refusals import (
    AFTER_MAX,
    BEFORE_MAX,
    FOREVER,
    MAX_BYTES,
    RefusalCheck,
    TargetLimits,
    needed_settings,
)
from archiver.storage.formats import SegmentFormats
from archiver.storage.parquet import ParquetFormat
from tests.support.archive.lake import Lake

NOW = 1_790_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
NOISE = random.Random(7).randbytes(2_000_000)
ZEROS = bytes(45_000_000)


class CountingFormat:
    name, extension = "parquet", "parquet"

    def __init__(self) -> None:
        self.read = 0

    def open(self, objects: Any, path: str, **options: Any) -> Any:
        reader = ParquetFormat().open(objects, path, **options)
        blocks = reader.blocks

        def counted(*arguments: Any) -> Any:
            self.read += 1
            return blocks(*arguments)

        reader.blocks = counted
        return reader


def add(lake: Lake, archive: Any, start: int, *records: tuple[int | None, bytes], largest: int | None = None) -> None:
    rows = [
        archive.row(offset=start + number, partition=0, key=b"k", value=value, headers=[], timestamp=timestamp)
        for number, (timestamp, value) in enumerate(records)
    ]
    lake.add(archive.rows, archive.batch(rows), start, start + len(rows), largest=largest)


def check(lake: Lake, codec: Codec = Codec.ZSTD, selection: Selection | None = None, **settings: int) -> int:
    counting = CountingFormat()
    opened = lake.archive(formats=SegmentFormats(written=counting))
    chosen = selection or Selection()
    names = {"most": MAX_BYTES, "before": BEFORE_MAX, "after": AFTER_MAX}
    texts = {names[name]: str(value) for name, value in settings.items()}
    limits = TargetLimits.of("copy", texts, now_ms=NOW)
    RefusalCheck(opened, chosen, limits, codec).run(chosen.resolve(opened))
    return counting.read


def test_bounds_of_files_suffice(lake: Lake, archive: Any) -> None:
    add(lake, archive, 0, (NOW, b"x"), (NOW - 400 * DAY, b"y"), largest=100)
    add(lake, archive, 2, (None, b"x"), largest=100)
    assert check(lake, after=HOUR) == 0
    assert check(lake, after=HOUR, before=401 * DAY) == 1, "old timestamps are read: bounds state the latest"
    assert check(lake, most=100) > 0


@pytest.mark.parametrize("largest", [2_000_100, None])
def test_records_that_are_too_large(lake: Lake, archive: Any, largest: int | None) -> None:
    add(lake, archive, 0, (NOW, b"x"), (NOW, NOISE), (NOW, NOISE + b"y"), largest=largest)
    with pytest.raises(ConfigError, match=r"at most 1,048,588 bytes, and 2 records are larger") as error:
        check(lake)
    assert (error.value.context["large_partition"], error.value.context["large_offset"]) == (0, 1)
    check(lake, most=int(str(error.value).partition("max.message.bytes to ")[2].split()[0]))
    assert check(lake, selection=Selection.parse(end="1"), most=500) >= 0
    with pytest.raises(ConfigError, match="one record is larger"):
        check(lake, selection=Selection.parse(where="offset = 2"))
    with pytest.raises(ConfigError, match="1,900,000 bytes, and one record is larger"):
        check(lake, selection=Selection.parse(start="2"), most=1_900_000)


@pytest.mark.parametrize(
    "parts",
    [
        {"key": NOISE},
        {"headers": [(b"h", NOISE)]},
        {"value": None, "headers": [(b"a", NOISE[::2]), (b"b", NOISE[1::2])]},
    ],
    ids=["key", "header", "headers of a tombstone"],
)
@pytest.mark.parametrize("largest", [2_000_200, None])
def test_records_that_are_large_outside_their_value(
    lake: Lake, archive: Any, parts: dict[str, Any], largest: int | None
) -> None:
    small = {"partition": 0, "key": b"k", "value": b"v", "headers": [], "timestamp": NOW}
    rows = [archive.row(**small | {"offset": 0}), archive.row(**small | parts | {"offset": 1})]
    lake.add(archive.rows, archive.batch(rows), 0, 2, largest=largest)
    with pytest.raises(ConfigError, match=r"at most 1,048,588 bytes, and one record is larger") as error:
        check(lake)
    assert (error.value.context["large_partition"], error.value.context["large_offset"]) == (0, 1)
    needed = int(str(error.value).partition("max.message.bytes to ")[2].split()[0])
    assert needed >= len(NOISE)
    check(lake, most=needed)


def test_records_that_compress_are_taken(lake: Lake, archive: Any) -> None:
    add(lake, archive, 0, (NOW, ZEROS), largest=len(ZEROS) + 50)
    check(lake)
    with pytest.raises(ConfigError, match="one record is larger"):
        check(lake, codec=Codec.NONE)


@pytest.mark.parametrize(
    ("timestamp", "limits", "advice"),
    [
        (NOW - 2 * DAY, {"before": DAY}, f"too old: set its {BEFORE_MAX} to {FOREVER}"),
        (0, {"before": DAY}, "too old"),
        (-86_400_000, {"before": DAY}, "too old"),
        (NOW + 2 * HOUR, {"after": HOUR}, f"too far in the future: set its {AFTER_MAX} to {FOREVER}"),
        (253_402_214_400_000, {"after": HOUR}, "too far in the future"),
        (NOW + 2 * HOUR, {"after": HOUR, "before": DAY}, "too far in the future"),
        (NOW - DAY - 1, {"before": DAY, "after": HOUR}, "too old"),
        (NOW + HOUR + 1, {"before": DAY, "after": HOUR}, "too far in the future"),
        (-62_135_596_800_000, {"before": DAY}, "too old"),
    ],
)
@pytest.mark.parametrize("where", [None, "offset >= 0"])
def test_timestamps_that_are_refused(
    lake: Lake, archive: Any, *, timestamp: int, limits: dict[str, int], advice: str, where: str | None
) -> None:
    add(lake, archive, 0, (NOW, b"x"), (timestamp, b"y"), (None, b"z"), largest=100)
    with pytest.raises(ConfigError, match=advice) as error:
        check(lake, selection=Selection.parse(where=where), **limits)
    assert (error.value.context["offset"], error.value.context["timestamp_ms"]) == (1, timestamp)
    check(lake)
    check(lake, selection=Selection.parse(where="offset != 1"), **limits)
    check(lake, selection=Selection.parse(start="2"), **limits)


@pytest.mark.parametrize("timestamp", [NOW - DAY, NOW, NOW + HOUR])
def test_timestamps_at_the_limits_are_taken(lake: Lake, archive: Any, timestamp: int) -> None:
    add(lake, archive, 0, (timestamp, b"x"), largest=100)
    check(lake, before=DAY, after=HOUR)


def test_sizes_and_timestamps_are_reported_together(lake: Lake, archive: Any) -> None:
    add(lake, archive, 0, (0, NOISE), largest=2_000_100)
    with pytest.raises(ConfigError, match=r"one record is larger.*; it refuses timestamps that are too old"):
        check(lake, before=DAY)


def test_limits_of_older_brokers() -> None:
    limits = TargetLimits.of("t", {"message.timestamp.difference.max.ms": "10"}, now_ms=100)
    assert (limits.lowest, limits.highest, limits.most_bytes) == (90, 110, 1_048_588)
    assert TargetLimits.of("t", {}, now_ms=100).highest == FOREVER


@pytest.mark.parametrize("largest", [2_000_100, None])
def test_a_created_topic_takes_the_largest_record(lake: Lake, archive: Any, largest: int | None) -> None:
    add(lake, archive, 0, (NOW, b"x"), largest=100)
    assert needed_settings(lake.archive(), Selection()) == {}
    add(lake, archive, 1, (NOW, NOISE), largest=largest)
    settings = needed_settings(lake.archive(), Selection())
    assert settings.keys() == {MAX_BYTES}
    assert 2_000_000 < int(settings[MAX_BYTES]) < 2_001_000
    check(lake, codec=Codec.NONE, most=int(settings[MAX_BYTES]))
    assert needed_settings(lake.archive(), Selection.parse(end="1")) == {}
