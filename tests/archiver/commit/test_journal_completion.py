"""Journal entries restored from snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.snapshots import Summary

from archiver.commit.journal_completion import complete_journal
from archiver.storage.formats import FORMATS
from archiver.storage.journal import TableJournal
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from tests.support.archive.lake import TOPIC, Lake
from tests.support.storage.old_journal import empty_journal


@pytest.fixture
def journal(tmp_path: Path) -> TableJournal:
    made = empty_journal(tmp_path / "journal")
    made.keep_starts({0: 0})
    return made


@pytest.fixture
def lake(lake: Lake, archive: Any) -> Lake:
    for start in (0, 10):
        add(lake, archive, start)
    lake.add(archive.rows, None, 20, 25)
    return lake


def add(lake: Lake, archive: Any, start: int) -> str:
    rows = archive.batch([archive.row(offset=offset) for offset in range(start, start + 10)])
    path = lake.add(archive.rows, rows, start, start + 10, digest=f"{start + 1:032x}")
    assert path is not None
    return path


def complete(lake: Lake, journal: TableJournal) -> list[tuple[int, int, int]]:
    table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
    return sorted(
        (item.range.start_offset, item.range.end_offset, item.range.rows)
        for item in complete_journal(table, journal, FORMATS).landed
    )


def journaled(journal: TableJournal) -> list[tuple[int, int]]:
    return [item.offsets for item in journal.read().ranges]


def commit_ids(lake: Lake) -> list[str]:
    return [snapshot.summary[keys.COMMIT_ID] for snapshot in lake.metadata.snapshots if snapshot.summary]


def test_every_commit_gets_its_entry_once(lake: Lake, journal: TableJournal) -> None:
    assert complete(lake, journal) == [(0, 10, 10), (10, 20, 10), (20, 25, 0)]
    assert journaled(journal) == [(0, 10), (10, 20), (20, 25)]
    assert sorted(journal.commit_ids()) == sorted(commit_ids(lake))
    assert complete(lake, journal) == []


def test_entries_are_those_that_the_job_writes(lake: Lake, journal: TableJournal) -> None:
    complete(lake, journal)
    (first, second, _) = journal.read().ranges
    assert (first.files[0].commit_id, second.files[0].commit_id) == tuple(commit_ids(lake)[:2])
    assert [first.digest, second.digest] == [f"{1:032x}", f"{11:032x}"]
    assert [item.paths for item in (first, second)] == [(file.file_path,) for file in sorted_files(lake)]


def sorted_files(lake: Lake) -> list[Any]:
    offset = lake.metadata.schema().find_field("kafka.offset").field_id
    return sorted(lake.files(), key=lambda file: int.from_bytes(file.lower_bounds[offset], "little"))


def test_only_commits_since_the_first_entry_are_written(lake: Lake, tmp_path: Path) -> None:
    journal = empty_journal(tmp_path / "later")
    assert complete(lake, journal) == []
    assert journaled(journal) == []


def test_files_that_a_rewrite_replaced_name_their_commit_still(lake: Lake, journal: TableJournal) -> None:
    lake.rewrite()
    assert complete(lake, journal) == [(0, 10, 10), (10, 20, 10), (20, 25, 0)]


def test_a_commit_whose_files_are_gone_stays_unknown(lake: Lake, journal: TableJournal) -> None:
    lake.rewrite(drop=True)
    assert complete(lake, journal) == [(20, 25, 0)]


def test_a_commit_with_another_digest_stays_unknown(lake: Lake, journal: TableJournal) -> None:
    first, *rest = lake.metadata.snapshots
    assert first.summary is not None
    summary = {**first.summary.additional_properties, keys.DIGEST: "0" * 31 + "2"}
    changed = first.model_copy(update={"summary": Summary(first.summary.operation, **summary)})
    lake.metadata = lake.metadata.model_copy(update={"snapshots": [changed, *rest]})
    assert complete(lake, journal) == [(10, 20, 10), (20, 25, 0)]
