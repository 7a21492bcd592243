"""What is put into a table for a hole: a file's own entry only where the table has none."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from archiver.refill.copying import CopiedRows, RowCopier
from archiver.refill.mending import Mender
from archiver.rows.missing_rows import TableRows
from catalog.holes import ExpectedRange, Hole
from tests.catalog.memory import file

PATH = "file:///data/lost.parquet"


class Rows:
    """A table without a row of the range."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def offsets(self, wanted: Any) -> Any:
        return np.empty(0, np.int64)

    def has_file(self, path: str) -> bool:
        return path in self.paths


class Copier:
    def copy(self, source: Any, wanted: Any, *, without: Any) -> CopiedRows:
        return CopiedRows(rows=source.rows, digest="0" * 32, file=file("file:///data/copy.parquet", rows=source.rows))


@pytest.mark.parametrize(("there", "added"), [((), PATH), ((PATH,), "file:///data/copy.parquet")])
def test_a_file_whose_rows_were_all_deleted_does_not_come_twice(there: tuple[str, ...], added: str) -> None:
    one = ExpectedRange(id="A", partition=0, start_offset=0, end_offset=5, path=PATH, rows=5, file_rows=5, digest=None)
    hole = Hole(range_id="A", partition=0, start_offset=0, end_offset=5, rows=5)
    mender = Mender(live=cast("TableRows", Rows(*there)), expected={"A": one}, copier=cast("RowCopier", Copier()))
    mending = mender.from_file(hole, file(PATH, rows=5))
    assert (mending.rows, [each.path for each in mending.files]) == (5, [added])
