"""Files that a reprocessing reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.archive.table_files import ManifestReader
from archiver.upkeep.reprocess.row_filter import RowFilter
from tests.support.archive.listed_table import ListedTable, data_file

# columns that stand for `__err__`: of times, a file can say that no row has one
KEY_ERR, VAL_ERR = 12, 18
NONE, SOME = None, 7

FILES = {
    "no errors": {"times": {KEY_ERR: NONE, VAL_ERR: NONE}},
    "errors in keys": {"times": {KEY_ERR: SOME, VAL_ERR: NONE}},
    "errors in values": {"times": {KEY_ERR: NONE, VAL_ERR: SOME}},
    "one unknown": {"times": {KEY_ERR: NONE}},
    "unknown": {"times": {}},
    "partition 1": {"times": {VAL_ERR: SOME}, "partitions": (1, 1)},
    "partitions 2 to 4": {"times": {VAL_ERR: SOME}, "partitions": (2, 4)},
    "from 10 to 19": {"times": {VAL_ERR: SOME}, "offsets": (10, 19)},
}


@pytest.mark.parametrize(
    ("wanted", "left_out"),
    [
        (RowFilter(), set()),
        (RowFilter(partitions=frozenset({1})), {"partitions 2 to 4"}),
        (RowFilter(partitions=frozenset({3, 9})), {"partition 1"}),
        (RowFilter(partitions=frozenset({0})), {"partition 1", "partitions 2 to 4"}),
        (RowFilter(start_offset=19), set()),
        (RowFilter(start_offset=20), {"from 10 to 19"}),
        (RowFilter(end_offset=10), {"from 10 to 19"}),
        (RowFilter(end_offset=11), set()),
    ],
)
@pytest.mark.parametrize("counted", [frozenset({KEY_ERR, VAL_ERR}), frozenset({KEY_ERR}), frozenset()])
def test_candidates(tmp_path: Path, wanted: RowFilter, left_out: set[str], counted: frozenset[int]) -> None:
    listed = ListedTable(tmp_path)
    listed.add([data_file(name, [1], **said) for name, said in FILES.items()])  # type: ignore[arg-type]
    files = ManifestReader(counted).files(listed.table())
    paths = {file.path for file in wanted.candidates(files, frozenset({KEY_ERR, VAL_ERR}))}
    sure = {"no errors"} if len(counted) == 2 else set()
    assert paths == FILES.keys() - left_out - sure
    assert list(wanted.candidates(files, frozenset())) == []
    assert {file.path for file in wanted.candidates(files, None)} == FILES.keys() - left_out
