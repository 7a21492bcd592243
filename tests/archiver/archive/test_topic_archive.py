"""An archive whose table changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from archiver.archive import topic_archive
from archiver.archive.topic_archive import open_archive
from archiver.config import load_config
from archiver.errors import ArchiveReplaced, RecordsRetired
from catalog import registry
from catalog.errors import RegistryUnreachable, RolledBack
from catalog.value_terms import Lookup
from tests.support.archive.lake import Lake


def fill(lake: Lake, archive: Any, offsets: range, value: bytes) -> None:
    rows = [archive.row(offset=offset, value=value) for offset in offsets]
    lake.add(archive.rows, archive.batch(rows), offsets.start, offsets.stop)


def make_anew(lake: Lake, archive: Any, folder: Path, *, drop: bool = False) -> None:
    if drop:
        for file in lake.files():
            Path(file.file_path.removeprefix("file://")).unlink()
    replacement = Lake(folder, archive.rows)
    fill(replacement, archive, range(20), b"other")
    lake.metadata = replacement.metadata


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


def test_records_that_were_retired_meanwhile_are_no_silent_gap(lake: Lake, archive: Any) -> None:
    for start in range(0, 100, 10):
        fill(lake, archive, range(start, start + 10), b"v")
    opened = lake.archive()
    records = opened.records(0)
    seen = offsets(next(records))
    lake.retire(80)
    with pytest.raises(RecordsRetired, match="retired before they were read") as caught:
        seen.extend(offset for batch in records for offset in offsets(batch))
    assert seen == list(range(len(seen)))
    assert caught.value.context == {"topic": "orders", "partition": 0, "position": len(seen), "first_offset": 80}
    assert not caught.value.retryable
    assert [offset for batch in opened.records(0) for offset in offsets(batch)] == list(range(80, 100))
    assert [offset for batch in opened.records(0, 80) for offset in offsets(batch)] == list(range(80, 100))
    with pytest.raises(RecordsRetired, match="position=20"):
        list(opened.records(0, 20))


def test_records_that_were_read_may_be_retired(lake: Lake, archive: Any) -> None:
    for start in range(0, 30, 10):
        fill(lake, archive, range(start, start + 10), b"v")
    records = lake.archive().records(0)
    seen = offsets(next(records))
    lake.rewrite(drop=True)
    lake.set(**{"archiver.first-offsets": '{"0": 10}'})
    assert seen + [offset for batch in records for offset in offsets(batch)] == list(range(30))


def offsets(batch: pa.RecordBatch) -> list[int]:
    pylist: list[int] = batch.column("offset").to_pylist()
    return pylist


def test_a_table_that_was_set_back_is_not_read_with_silent_gaps(lake: Lake, archive: Any) -> None:
    fill(lake, archive, range(10), b"v")
    opened = lake.archive()
    fill(lake, archive, range(10, 20), b"w")
    first, second = (snapshot.snapshot_id for snapshot in lake.metadata.snapshots)
    whole = opened.refresh()
    lake.set_main(first)
    for read in (lake.archive, opened.refresh):
        with pytest.raises(RolledBack, match="archiver refill") as caught:
            read()
        assert (caught.value.context["topic"], caught.value.context["missing"]) == ("orders", "partition 0 [10, 20)")
    assert opened.snapshot is whole
    lake.set_main(second)
    assert sum(batch.num_rows for batch in opened.records(0)) == 20


def test_registry_and_journal_are_queried_by_table_uuid(
    lake: Lake, archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the id of a later table with the same name."""
    path = tmp_path / "archiver.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
        f'[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n[archive]\njournal = "{(tmp_path / "kept").as_uri()}"\n'
        "[topics.orders]\n"
    )
    requests: list[UUID | str | None] = []

    class Registry:
        def __init__(self, *, table_uuid: UUID, **_: Any) -> None:
            self._uuid = table_uuid

        def row_mapping(self, version: int) -> None:
            requests.append(self._uuid)

    class Journal:
        def __init__(self, journal: Any) -> None:
            self._journal = journal

        def row_mapping(self, version: int) -> Any:
            requests.append(self._journal().folder.rpartition("/")[2])
            return archive.rows

    for name, source in (("RegistryMappings", Registry), ("JournalMappings", Journal)):
        monkeypatch.setattr(topic_archive, name, source)
    fill(lake, archive, range(10), b"v")
    lake.rewrite()  # without footers
    before = lake.metadata.table_uuid
    opened = open_archive(load_config(path, {}), "orders", lake)
    make_anew(lake, archive, tmp_path / "anew")

    assert sum(batch.num_rows for batch in opened.records(0)) == 10
    assert requests == [before, str(before)]


def test_only_values_must_be_answered_soon(
    lake: Lake, archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
        '[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n[topics.orders]\n'
    )
    limits: list[float | None] = []

    def reader(_dsn: str, *, connections: int, answers_within: float | None = None) -> None:
        limits.append(answers_within)
        raise RegistryUnreachable("it doesn't answer")

    monkeypatch.setattr(registry, "RegistryReader", reader)
    fill(lake, archive, range(10), b"v")
    opened = open_archive(load_config(path, {}), "orders", lake)
    with pytest.raises(RegistryUnreachable):
        opened.absent_values(["file"], [Lookup(7, 1)])
    with pytest.raises(RegistryUnreachable):
        opened.ledger()
    assert limits == [topic_archive.VALUES_WITHIN, None]
