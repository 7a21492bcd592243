"""An archive that is read for long, and what happens to its table meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from archiver.archive import topic_archive
from archiver.archive.topic_archive import open_archive
from archiver.config import load_config
from archiver.errors import ArchiveReplaced
from catalog.errors import RolledBack
from tests.support.archive.lake import Lake


def fill(lake: Lake, archive: Any, offsets: range, value: bytes) -> None:
    rows = [archive.row(offset=each, value=value) for each in offsets]
    lake.add(archive.rows, archive.batch(rows), offsets.start, offsets.stop)


def make_anew(lake: Lake, archive: Any, folder: Path, *, drop: bool = False) -> None:
    """Drop the table and archive other records in a new one under its name."""
    if drop:
        for each in lake.files():
            Path(each.file_path.removeprefix("file://")).unlink()
    other = Lake(folder, archive.rows)
    fill(other, archive, range(20), b"other")
    lake.metadata = other.metadata


def test_a_table_made_anew_is_named_at_the_next_refresh(lake: Lake, archive: Any, tmp_path: Path) -> None:
    fill(lake, archive, range(10), b"v")
    opened, before = lake.archive(), lake.metadata.table_uuid
    opened.refresh()
    make_anew(lake, archive, tmp_path / "anew")
    for _ in range(2):
        with pytest.raises(ArchiveReplaced, match="new consumer") as caught:
            opened.refresh()
    assert caught.value.context == {
        "topic": "orders",
        "table": "kafka.orders",
        "read_uuid": str(before),
        "table_uuid": str(lake.metadata.table_uuid),
    }
    assert not caught.value.retryable
    assert opened.end(0) == 10, "it still is the archive that was opened"


def test_records_never_go_on_with_those_of_a_table_made_anew(lake: Lake, archive: Any, tmp_path: Path) -> None:
    fill(lake, archive, range(10), b"v")
    opened = lake.archive()
    make_anew(lake, archive, tmp_path / "anew", drop=True)
    with pytest.raises(ArchiveReplaced):
        list(opened.records(0, 0, 20))


def test_a_table_that_was_set_back_is_not_read_with_silent_gaps(lake: Lake, archive: Any) -> None:
    fill(lake, archive, range(10), b"v")
    opened = lake.archive()
    fill(lake, archive, range(10, 20), b"w")
    first, second = (each.snapshot_id for each in lake.metadata.snapshots)
    whole = opened.refresh()
    lake.set_main(first)
    for read in (lake.archive, opened.refresh):
        with pytest.raises(RolledBack, match="archiver refill") as caught:
            read()
        assert (caught.value.context["topic"], caught.value.context["missing"]) == ("orders", "partition 0 [10, 20)")
    assert opened.snapshot is whole
    lake.set_main(second)
    assert sum(batch.num_rows for batch in opened.records(0)) == 20


def test_registry_and_journal_are_asked_about_the_table_that_is_read(
    lake: Lake, archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not about the one that has its name when a mapping is asked for."""
    path = tmp_path / "archiver.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
        f'[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n[archive]\njournal = "{(tmp_path / "kept").as_uri()}"\n'
        "[topics.orders]\n"
    )
    asked: list[UUID | str | None] = []

    class Registry:
        def __init__(self, *, table_uuid: UUID, **_: Any) -> None:
            self._uuid = table_uuid

        def row_mapping(self, version: int) -> None:
            asked.append(self._uuid)

    class Journal:
        def __init__(self, journal: Any) -> None:
            self._journal = journal

        def row_mapping(self, version: int) -> Any:
            asked.append(self._journal().folder.rpartition("/")[2])
            return archive.rows

    monkeypatch.setattr(topic_archive, "RegistryMappings", Registry)
    monkeypatch.setattr(topic_archive, "JournalMappings", Journal)
    fill(lake, archive, range(10), b"v")
    lake.rewrite()  # without footers
    before = lake.metadata.table_uuid
    opened = open_archive(load_config(path, {}), "orders", lake)
    make_anew(lake, archive, tmp_path / "anew")

    assert sum(batch.num_rows for batch in opened.records(0)) == 10
    assert asked == [before, str(before)]
