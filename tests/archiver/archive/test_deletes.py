"""Deleted rows become gaps, as in pyiceberg."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.errors import BadSegment, ReplayError
from tests.support.archive.archived_rows import KnownMapping, records_of, replayed, rows_of
from tests.support.archive.lake import Lake
from tests.support.storage.parquet_pages import page_headers, without_page


def test_position_deletes_become_gaps(lake: Lake, filled: list[Any]):
    first, *_ = sorted(lake.files(), key=lambda file: file.file_path)
    lake.delete_positions({first.file_path: [0, 2, 91]})
    kept = replayed(lake.archive())
    judged = lake.load("orders").scan().to_arrow()["kafka"]
    offsets = sorted(value["offset"] for value in judged.to_pylist() if value["partition"] == 0)
    assert [value["offset"] for value in kept] == offsets
    assert kept == [record for record in records_of(filled, 0) if record["offset"] not in (1, 3, 99)]


def test_position_deletes_reach_every_row_group(lake: Lake, filled: list[Any], archive: Any):
    (path,) = lake.rewrite(row_group_size=37)
    positions = [3, 36, 37, 74, 110, 200]
    lake.delete_positions({path: positions, "file:///elsewhere": [1]})
    table = lake.load("orders").scan().to_arrow()
    offsets = sorted(value["offset"] for value in table["kafka"].to_pylist() if value["partition"] == 0)
    result = replayed(lake.archive(registry=lambda *_: KnownMapping(archive.rows)))
    assert [value["offset"] for value in result] == offsets
    assert len(result) < len(records_of(filled, 0))


def test_bit_flip_in_position_deletes_hides_no_other_row(lake: Lake, filled: list[Any]):
    first, *_ = sorted(lake.files(), key=lambda file: file.file_path)
    lake.delete_positions({"file:///elsewhere": range(300), first.file_path: [0, 2, 91]})
    (local,) = lake.folder.rglob("deletes*.parquet")
    with_checksums = {"write_page_checksum": True, "data_page_size": 64, "write_batch_size": 16}
    pq.write_table(pq.read_table(local), local, compression="none", use_dictionary=["file_path"], **with_checksums)
    kept, data = replayed(lake.archive()), local.read_bytes()
    pages = [header for header in page_headers(data) if header.is_data]
    assert len(pages) > 4
    for page in pages:
        local.write_bytes(without_page(data, page))
        with pytest.raises(BadSegment):
            replayed(lake.archive())
    last = pages[-1].end
    for at in range(last, last + 24):  # positions in the last page, as they are
        local.write_bytes(data[:at] + bytes((data[at] ^ 4,)) + data[at + 1 :])
        with pytest.raises(BadSegment):
            replayed(lake.archive())
    local.write_bytes(data)
    assert replayed(lake.archive()) == kept


def test_position_deletes_that_name_no_rows_are_told(lake: Lake, filled: list[Any]):
    lake.delete_positions({"file:///elsewhere": [1]})
    (local,) = lake.folder.rglob("deletes*.parquet")
    for column, value in (("file_path", "path"), ("pos", "position")):
        table = pq.read_table(local)
        pq.write_table(table.rename_columns({column: value}), local)
        with pytest.raises(ReplayError, match="which rows it means"):
            replayed(lake.archive())
        pq.write_table(table, local)


def as_bytes(local: Path, change: Callable[[bytes], bytes] = bytes) -> None:
    table = pq.read_table(local)
    paths = pa.array([change(value) for value in table["file_path"].cast(pa.binary()).to_pylist()], pa.binary())
    pq.write_table(table.set_column(0, "file_path", paths), local)


def test_position_deletes_accept_paths_as_bytes(lake: Lake, filled: list[Any]):
    first, *_ = sorted(lake.files(), key=lambda file: file.file_path)
    lake.delete_positions({"file:///elsewhere": [1], first.file_path: [0, 2, 91]})
    (local,) = lake.folder.rglob("deletes*.parquet")
    as_bytes(local)
    assert replayed(lake.archive()) == [
        record for record in records_of(filled, 0) if record["offset"] not in (1, 3, 99)
    ]
    as_bytes(local, lambda path: path + b"\xff")
    with pytest.raises(BadSegment, match="aren't text") as raised:
        replayed(lake.archive())
    assert raised.value.context["file"] == local.as_uri()


def test_position_deletes_of_other_types_are_told(lake: Lake, filled: list[Any]):
    first, *_ = lake.files()
    lake.delete_positions({first.file_path: [0]})
    (local,) = lake.folder.rglob("deletes*.parquet")
    sound = pq.read_table(local)
    for at, column in ((0, pa.array([7])), (1, pa.array([0.0]))):
        pq.write_table(sound.set_column(at, sound.column_names[at], column), local)
        with pytest.raises(ReplayError, match="which rows it means"):
            replayed(lake.archive())


def ids(name: str, field_id: int, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def test_equality_deletes_by_a_nested_column(lake: Lake, filled: list[Any]):
    kafka = pa.struct([ids("offset", 11, pa.int64())])
    lake.delete_equal(
        pa.table([pa.array([{"offset": 1}, {"offset": 150}], kafka)], pa.schema([ids("kafka", 4, kafka)])), [11]
    )
    assert replayed(lake.archive()) == [record for record in records_of(filled, 0) if record["offset"] not in (1, 150)]
    assert replayed(lake.archive(), 1) == [record for record in records_of(filled, 1) if record["offset"] != 1]


def test_equality_deletes_by_several_columns_with_nulls(lake: Lake, filled: list[Any]):
    kafka = pa.struct([ids("partition", 10, pa.int32()), ids("event_timestamp", 12, pa.timestamp("us", "UTC"))])
    rows = [
        {"partition": 1, "event_timestamp": None},
        {"partition": 0, "event_timestamp": 1_000_003_000},
        {"partition": 1, "event_timestamp": 999},
    ]
    lake.delete_equal(pa.table([pa.array(rows, kafka)], pa.schema([ids("kafka", 4, kafka)])), [10, 12])
    assert replayed(lake.archive()) == [record for record in records_of(filled, 0) if record["timestamp"] != 1_000_003]
    assert replayed(lake.archive(), 1) == [record for record in records_of(filled, 1) if record["timestamp"] != -1]


def test_equality_deletes_spare_later_files_and_other_days(lake: Lake, filled: list[Any], archive: Any):
    kafka = pa.struct([ids("offset", 11, pa.int64())])
    deletes = pa.table([pa.array([{"offset": 305}, {"offset": 5}], kafka)], pa.schema([ids("kafka", 4, kafka)]))
    lake.delete_equal(deletes, [11])
    lake.delete_equal(deletes, [11], partition=1)
    later = rows_of(archive, range(300, 310))
    lake.add(archive.rows, archive.batch(later), 300, 310)
    assert replayed(lake.archive()) == [record for record in records_of(filled + later, 0) if record["offset"] != 5]


def test_equality_deletes_of_a_column_the_file_lacks_match_nulls(lake: Lake, filled: list[Any]):
    lake.delete_equal(pa.table([pa.array([None], pa.string())], pa.schema([ids("note", 4711, pa.string())])), [4711])
    assert replayed(lake.archive()) == []
