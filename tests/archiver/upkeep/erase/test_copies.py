"""Unrecorded uploads with erased records."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.storage.file_names import DataFileName
from archiver.storage.formats import FORMATS
from archiver.upkeep.erase.copies import Copies, remove_copies
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import FileState, new_id
from catalog.registry.known_files import FileStates
from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import TOPIC, Lake


@pytest.mark.parametrize("state", [FileState.REPLACED, FileState.REJECTED, None])
def test_a_recorded_copy_waits_for_no_grace(lake: Lake, archive: Any, state: FileState | None) -> None:
    """A compaction replaced a refill's copy: the purge deletes it if it has erased offsets."""
    path = lake.add(archive.rows, archive.batch(rows_of(archive, range(10))), 0, 10)
    assert path is not None
    table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
    name = str(DataFileName(topic=TOPIC.topic, ulid=new_id(), extension="parquet", partition=0, start_offset=0))
    copy = Path(table.data_location.removeprefix("file://")) / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(Path(path.removeprefix("file://")).read_bytes())
    states = FileStates(states={name: state} if state else {})
    copies = remove_copies(
        table,
        {0: [(3, 4)]},
        registry=cast("Any", SimpleNamespace(claims=SimpleNamespace(file_states=lambda *_: states))),
        trail=cast("Any", SimpleNamespace()),
        checks=cast("Any", SimpleNamespace(references={Path(path).name})),
        formats=FORMATS,
        older_than_ms=0,
    )
    assert [Path(left).name for left in copies.left] == ([] if state else [name])
    assert copies == Copies(left=copies.left)
