"""Values in `--decode`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.replay.export import Export, export_jsonl
from schema_mapping import LedgerState, RowMapping, assign
from tests.support.archive.lake import Lake, schema_of
from tests.support.schemas.proto_text import compile_text

FIRST = "message M { int64 a_number = 1; string b = 2; }"
SECOND = "message M { int64 a_number = 1; string b = 2; repeated double c = 3; }"


def batch(archive: Any, rows: RowMapping, start: int, values: list[bytes | None]) -> pa.RecordBatch:
    maker = type(archive)(rows=rows)
    plain = maker.batch(
        archive.row(offset=start + number, key=b"k", value=None, schema_version=rows.schema_version)
        for number in range(len(values))
    )
    decoded = rows.value.decode(pa.array(values, pa.binary()))
    columns = [decoded if field.name == "val" else plain.column(field.name) for field in rows.arrow_schema]
    return pa.RecordBatch.from_arrays(columns, schema=rows.arrow_schema)


def test_each_row_by_its_own_schema(tmp_path: Path, archive: Any) -> None:
    first = assign(LedgerState(), value=compile_text(FIRST))
    second = assign(first.state, value=compile_text(SECOND))
    lake = Lake(tmp_path / "lake", first.row)
    lake.add(first.row, batch(archive, first.row, 0, [b"\x08\x07\x12\x01x", b"\x0a", None]), 0, 3)
    lake.evolve(schema_of(second.row))
    lake.add(
        second.row, batch(archive, second.row, 3, [b"\x1a\x08" + b"\0" * 6 + b"\xf0\x7f", b"\x08\x01\x08\x02"]), 3, 5
    )
    stream = io.BytesIO()

    assert (
        export_jsonl(
            Export(selected=SelectedRecords(archive=lake.archive(), selection=Selection())), stream, decoded=True
        )
        == 5
    )

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["schema_version"], line["value_type"], line["value"]) for line in lines] == [
        (1, "t.M", {"aNumber": "7", "b": "x"}),
        (1, None, {"base64": "Cg==", "reason": "not decoded: truncated@1"}),
        (1, None, None),
        (2, "t.M", {"c": ["Infinity"]}),
        (2, "t.M", {"aNumber": "2"}),
    ]
    assert {(line["key_type"], line["key"]) for line in lines} == {(None, "k")}
    assert [*lines[0]] == [
        "topic", "partition", "offset", "timestamp", "timestamp_type", "schema_version",
        "key_type", "key", "value_type", "value", "headers",
    ]  # fmt: skip
    limited = io.BytesIO()
    assert (
        export_jsonl(
            Export(selected=SelectedRecords(archive=lake.archive(), selection=Selection()), limit=2),
            limited,
            decoded=True,
        )
        == 2
    )
    assert limited.getvalue().splitlines() == stream.getvalue().splitlines()[:2]
