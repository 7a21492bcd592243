"""Matching records, pruned by statistics."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.archive.open_file import OpenFile
from archiver.archive.records import AS_DECODED, RecordParts
from archiver.errors import ReplayError
from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.replay.export import Export, export_jsonl
from archiver.storage.segment import RowRange
from schema_mapping import LedgerState, assign
from tests.support.archive.lake import Lake, schema_of
from tests.support.archive.shop_of_two_schemas import FILE_ROWS, SECOND, Shop, batch, value
from tests.support.schemas.proto_text import compile_text


@pytest.mark.parametrize(
    ("where", "offsets"),
    [
        ("val.id = 7", [7]),
        ("val.id in (3, 14, 25, 99)", [3, 14, 25]),
        ("val.id = 7 and key = 'k7'", [7]),
        ("val.id = 7 and key = 'k8'", []),
        ("val.id = 7 or offset = 20", [7, 20]),
        ("not val.id = 7 and offset < 9", [0, 1, 2, 3, 4, 5, 6, 8]),
        ("val.name = 'h'", [7]),
        ("val.name in ('c', 'z')", [2, 25]),
        ("val.price = 1.0", []),
        ("key = 'k12'", [12]),
        ("value contains 'h'", [7]),
    ],
)
def test_matching_records_come_in_every_shape(tmp_path: Path, archive: Any, where: str, offsets: list[int]) -> None:
    shop = Shop(tmp_path, archive)
    assert shop.offsets(where) == offsets
    stream = BytesIO()
    assert export_jsonl(Export(selected=shop.selected(where)), stream, decoded=True) == len(offsets)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["offset"] for line in lines] == offsets
    assert all(line["value"].get("name") == chr(97 + line["offset"]) for line in lines)


@pytest.mark.parametrize("where", ["key = 'k12'", "val.id = 12"])
def test_only_records_that_match_are_decoded(tmp_path: Path, archive: Any, where: str) -> None:
    shown: list[int] = []

    def build(parts: RecordParts) -> pa.RecordBatch:
        assert parts.shown_values is not None
        shown.append(len(parts.shown_values))
        return AS_DECODED.build(parts)

    shape = replace(AS_DECODED, build=build)
    batches = [chosen for chosen, _ in Shop(tmp_path, archive).selected(where).read(RowRange(partition=0), shape)]
    assert [chosen.column("offset").to_pylist() for chosen in batches if chosen.num_rows] == [[12]]
    assert shown == [1]


def test_blocks_without_the_value_are_not_read(tmp_path: Path, archive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, read = Shop(tmp_path, archive), []
    rows = OpenFile.rows
    monkeypatch.setattr(OpenFile, "rows", lambda *given: read.append(given[0]) or rows(*given))
    assert shop.offsets("val.id = 12") == [12]
    assert len({id(file) for file in read}) == 1
    read.clear()
    assert shop.offsets("val.name = '~~'") == []
    assert read == []
    assert shop.offsets("val.price = 1.0") == []
    assert len(read) == 2 + 1, "older versions know no price, and floating numbers have no bounds here"
    lake = lake_with_sets(tmp_path, archive)
    for where, count in (("key = 'k1'", 100), ("key contains '1'", 100), ("header['h'] exists", 300), ("key = 'x'", 0)):
        read.clear()
        selected = SelectedRecords.of(lake.archive(), Selection.parse(where=where))
        assert sum(chosen.num_rows for chosen, _ in selected.read(RowRange(partition=0))) == count, where
        assert len(read) == (count > 0), where


def lake_with_sets(folder: Path, archive: Any) -> Lake:
    lake = Lake(folder / "sets", archive.rows)
    for number in range(3):
        rows = [
            archive.row(
                offset=300 * number + at,
                key=[b"a", b"k%d" % number, b"z"][at % 3],
                value=random.Random(at).randbytes(90),
                headers=[] if number else [(b"h", b"1")],
            )
            for at in range(300)
        ]
        lake.add(archive.rows, archive.batch(rows), 300 * number, 300 * number + 300)
    return lake


def test_statistics_prove_nothing_of_rows_that_were_not_decoded(tmp_path: Path, archive: Any) -> None:
    shop = Shop(tmp_path, archive, broken=14)
    selected = shop.selected("val.id = 99")
    assert [chosen.num_rows for chosen, _ in selected.read(RowRange(partition=0))] == []
    assert selected.unjudged.count == 1
    text = selected.unjudged.text("orders")
    assert text is not None
    assert "1 record can't be judged by the condition's columns and may match" in text
    assert "partition 0, offset 14" in text
    assert "archiver reprocess orders --all" in text


def test_without_a_registry_columns_are_refused(tmp_path: Path, archive: Any) -> None:
    shop = Shop(tmp_path, archive)
    with pytest.raises(ReplayError, match="need the registry"):
        SelectedRecords.of(shop.lake.archive(), Selection.parse(where="val.id = 1"))


def test_files_archived_raw_before_a_schema_are_reported(tmp_path: Path, archive: Any) -> None:
    raw = assign(LedgerState(), value=None, key=None)
    made = assign(raw.state, value=compile_text(SECOND))
    lake = Lake(tmp_path / "lake", raw.row)
    values: list[bytes | None] = [value(n) for n in range(2 * FILE_ROWS)]
    lake.add(raw.row, batch(archive, raw, 0, values[:FILE_ROWS]), 0, FILE_ROWS)
    lake.evolve(schema_of(made.row))
    lake.add(made.row, batch(archive, made, FILE_ROWS, values[FILE_ROWS:]), FILE_ROWS, 2 * FILE_ROWS)
    opened = lake.archive(ledger=lambda *_: made.state)
    selected = SelectedRecords.of(opened, Selection.parse(where="val.id = 17"))
    batches = [chosen for chosen, _ in selected.read(RowRange(partition=0)) if chosen.num_rows]
    assert [chosen.column("offset").to_pylist() for chosen in batches] == [[17]]
    assert selected.unjudged.count == FILE_ROWS, "their bytes may hold the value"
