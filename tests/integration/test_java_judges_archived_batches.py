"""Kafka's Java client reads the same in a log and in the batches of its archive, in every format, version and codec."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.replay.batches import ArchivedBatches, BatchCursor, BatchOptions
from archiver.wire import Codec, decode_batches
from archiver.wire.gap import gap_batch
from tests.archived_batches import archived, data_of, fetches
from tests.integration.java_records import SOURCE, JavaView, java, read_by_java

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("java")
    java(str(SOURCE), "write", str(folder))
    return folder


@pytest.fixture(scope="module")
def views(written: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[JavaView, JavaView, JavaView]]:
    """What Java reads in each file it wrote, in the batches of its archive, and in those from the middle on in zstd."""
    folder = tmp_path_factory.mktemp("ours")
    for file in sorted(written.iterdir()):
        log = file.read_bytes()
        end = decode_batches(log, start_offset=0, end_offset=1 << 62).next_offset
        archive = archived(folder / f"lake-{file.stem}", log, end=end, files=2).archive()
        with ArchivedBatches(archive) as source:
            (folder / file.name).write_bytes(b"".join(data_of(each) for each in fetches(source, 500)))
        with ArchivedBatches(archive, BatchOptions(spans_gaps=True)) as source:
            found = source.fetch(BatchCursor(partition=0, offset=end // 2), 1 << 20, compression=Codec.ZSTD)
            (folder / f"half-{file.name}").write_bytes(data_of(found))
    names = sorted(each.name for each in written.iterdir())
    theirs = read_by_java(*(written / name for name in names))
    ours = read_by_java(*(folder / name for name in names), *(folder / f"half-{name}" for name in names))
    return {name: (theirs[name], ours[name], ours[f"half-{name}"]) for name in names}


def test_java_reads_the_same_batches_and_records(views: dict[str, tuple[JavaView, JavaView, JavaView]]) -> None:
    assert len(views) > 50
    for name, (theirs, ours, _) in views.items():
        markers = {each["base_offset"] for each in theirs.batches if each["control"]}
        # format v2 has no other type of time
        records = [
            each | {"timestamp_type": max(each["timestamp_type"], 0)}
            for each in theirs.records
            if each["offset"] not in markers
        ]
        assert list(ours.records) == records != [], name
        batches = [each for each in theirs.batches if not each["control"]]
        assert len(ours.batches) == len(batches), name
        for one, other in zip(ours.batches, batches, strict=True):
            changed = {"magic": 2, "timestamp_type": max(other["timestamp_type"], 0), "size": one["size"]}
            assert one == other | changed, name


def test_java_goes_on_from_the_middle(views: dict[str, tuple[JavaView, JavaView, JavaView]]) -> None:
    for name, (_, ours, half) in views.items():
        end = max(each["last_offset"] for each in half.batches) + 1
        assert list(half.records) == [each for each in ours.records if each["offset"] >= end // 2], name
        assert {each["codec"] for each in half.batches if not each["control"]} == {int(Codec.ZSTD)}, name
        for one, following in zip(half.batches, half.batches[1:], strict=False):
            assert one["last_offset"] + 1 == following["base_offset"], name


def test_java_takes_a_gap_for_a_control_batch(tmp_path: Path) -> None:
    (tmp_path / "gap.bin").write_bytes(gap_batch(40, 49))
    (batch,) = read_by_java(tmp_path / "gap.bin")["gap.bin"].batches
    assert (batch["control"], batch["base_offset"], batch["last_offset"]) == (True, 40, 49)
