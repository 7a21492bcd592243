"""Two files of an older schema version, and one of a newer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.replay.export import Export
from schema_mapping import Assignment, LedgerState, assign
from tests.support.archive.lake import Lake, schema_of
from tests.support.schemas.proto_text import compile_text

FIRST = "message M { int64 id = 1; string name = 2; }"
SECOND = "message M { int64 id = 1; string name = 2; double price = 3; }"
FILE_ROWS = 10
BROKEN = b"\x0a"


def value(number: int) -> bytes:
    return b"\x08%c\x12\x01%c" % (number, 97 + number)


def batch(archive: Any, made: Assignment, start: int, values: list[bytes | None]) -> pa.RecordBatch:
    rows = made.row
    plain = type(archive)(rows=rows).batch(
        archive.row(offset=start + n, key=b"k%d" % (start + n), value=None, schema_version=rows.schema_version)
        for n in range(len(values))
    )
    decoded = rows.value.decode(pa.array(values, pa.binary()))
    columns = [decoded if field.name == "val" else plain.column(field.name) for field in rows.arrow_schema]
    return pa.RecordBatch.from_arrays(columns, schema=rows.arrow_schema)


class Shop:
    def __init__(self, folder: Path, archive: Any, *, broken: int | None = None) -> None:
        first = assign(LedgerState(), value=compile_text(FIRST))
        self.made = assign(first.state, value=compile_text(SECOND))
        self.lake = Lake(folder / "lake", first.row)
        self.values: list[bytes | None] = [value(n) for n in range(3 * FILE_ROWS)]
        if broken is not None:
            self.values[broken] = BROKEN
        for start in (0, FILE_ROWS):
            self._add(archive, first, start)
        self.lake.evolve(schema_of(self.made.row))
        self._add(archive, self.made, 2 * FILE_ROWS)

    def _add(self, archive: Any, made: Assignment, start: int) -> None:
        end = start + FILE_ROWS
        self.lake.add(made.row, batch(archive, made, start, self.values[start:end]), start, end)

    def selected(self, where: str) -> SelectedRecords:
        archive = self.lake.archive(ledger=lambda *_: self.made.state)
        return SelectedRecords.of(archive, Selection.parse(where=where))

    def offsets(self, where: str) -> list[int]:
        batches = Export(selected=self.selected(where)).batches()
        return [offset for chosen in batches for offset in chosen.column("offset").to_pylist()]
