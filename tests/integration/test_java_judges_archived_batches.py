"""Kafka's Java client on logs and archived batches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from archiver.archive.batches import ArchivedBatches, BatchCursor, BatchOptions
from archiver.codecs import Codec
from archiver.wire import decode_batches
from archiver.wire.gap import gap_batch
from tests.support.archive.archived_batches import archived, data_of, fetches
from tests.support.kafka.java_records import SOURCE, JavaView, java, read_by_java

pytestmark = pytest.mark.integration

VARIANTS = ("", "-append", "-stamped", "-compacted", "-idempotent", "-transactional")
FILES = [
    *(f"v2-none{variant}.bin" for variant in VARIANTS),
    *("v2-gzip-append.bin", "v2-snappy-compacted.bin", "v2-lz4-idempotent.bin", "v2-zstd-transactional.bin"),
    *("v0-none.bin", "v0-gzip-compacted.bin", "v1-none-stamped.bin", "v1-lz4-append.bin", "v1-snappy-compacted.bin"),
    "mixed.bin",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("java")
    java(str(SOURCE), "write", str(folder))
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    theirs: dict[str, JavaView]
    ours: dict[str, JavaView]
    halves: dict[str, JavaView]
    gap: JavaView


@pytest.fixture(scope="module")
def views(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Views:
    folder = tmp_path_factory.mktemp("ours")
    for file in (written / name for name in FILES):
        log = file.read_bytes()
        end = decode_batches(log, start_offset=0, end_offset=1 << 62).next_offset
        archive = archived(folder / f"lake-{file.stem}", log, end=end, files=2).archive()
        with ArchivedBatches(archive) as source:
            (folder / file.name).write_bytes(b"".join(data_of(fetch) for fetch in fetches(source, 500)))
        with ArchivedBatches(archive, BatchOptions(spans_gaps=True)) as source:
            middle = source.fetch(BatchCursor(partition=0, offset=end // 2), 1 << 20, compression=Codec.ZSTD)
            (folder / f"half-{file.name}").write_bytes(data_of(middle))
    (folder / "gap.bin").write_bytes(gap_batch(40, 49))
    halves = {name: f"half-{name}" for name in FILES}
    ours = read_by_java(*(folder / name for name in (*FILES, *halves.values(), "gap.bin")))
    return Views(
        theirs=read_by_java(*(written / name for name in FILES)),
        ours={name: ours[name] for name in FILES},
        halves={name: ours[half] for name, half in halves.items()},
        gap=ours["gap.bin"],
    )


def test_java_reads_the_same_batches_and_records(views: Views) -> None:
    for name in FILES:
        theirs, ours = views.theirs[name], views.ours[name]
        markers = {batch["base_offset"] for batch in theirs.batches if batch["control"]}
        # format v2 has no other type of time
        records = [
            record | {"timestamp_type": max(record["timestamp_type"], 0)}
            for record in theirs.records
            if record["offset"] not in markers
        ]
        assert list(ours.records) == records != [], name
        batches = [batch for batch in theirs.batches if not batch["control"]]
        assert len(ours.batches) == len(batches), name
        for actual, expected in zip(ours.batches, batches, strict=True):
            changed = {"magic": 2, "timestamp_type": max(expected["timestamp_type"], 0), "size": actual["size"]}
            assert actual == expected | changed, name


def test_java_goes_on_from_the_middle(views: Views) -> None:
    for name in FILES:
        ours, half = views.ours[name], views.halves[name]
        end = max(batch["last_offset"] for batch in half.batches) + 1
        assert list(half.records) == [record for record in ours.records if record["offset"] >= end // 2], name
        assert {batch["codec"] for batch in half.batches if not batch["control"]} == {int(Codec.ZSTD)}, name
        for previous, following in pairwise(half.batches):
            assert previous["last_offset"] + 1 == following["base_offset"], name


def test_java_takes_a_gap_for_a_control_batch(views: Views) -> None:
    (batch,) = views.gap.batches
    assert (batch["control"], batch["base_offset"], batch["last_offset"]) == (True, 40, 49)
