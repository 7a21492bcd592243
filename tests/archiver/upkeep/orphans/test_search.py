"""Which files are orphans."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyiceberg.table.update import SetPropertiesUpdate
from ulid import ULID

from archiver.errors import BadSegment
from archiver.storage.file_names import DataFileName
from archiver.storage.segment import SegmentMetadata, SegmentOrigin
from archiver.upkeep.orphans.report import KeptFor, OrphanKind, TopicOrphans
from archiver.upkeep.orphans.search import MANIFEST_SECONDS, Connected, OrphanSearch
from catalog.iceberg.append import prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.attempt_names import new_attempt_id
from catalog.model import FileState, new_id
from catalog.offset_range import OffsetRange
from catalog.registry.known_files import FileStates
from tests.support.catalog.memory import TOPIC, MemoryCatalog, span

HOUR = 3_600
NOW_MS = 1_900_000_000_000
OLD_MS = NOW_MS - 10 * HOUR * 1_000
YOUNG_MS = NOW_MS - HOUR * 1_000


def origin(end: int, *, topic: str = TOPIC.topic, cluster: str = TOPIC.cluster_id) -> SegmentOrigin:
    return SegmentOrigin(cluster_id=cluster, topic=topic, topic_id="", partition=0, start_offset=0, end_offset=end)


def footer(end: int | None = None, *, version: int | None = 1, **of: str) -> SegmentMetadata:
    made = None if end is None else origin(end, **of)
    return SegmentMetadata(rows=1, origin=made, mapping=None, schema_version=1, format_version=version)


@dataclass
class Lake:
    folder: Path
    memory: MemoryCatalog
    footers: dict[str, SegmentMetadata] = field(default_factory=dict)
    known: FileStates = field(default_factory=FileStates)
    journaled: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    older_than: float = 5.0 * HOUR
    extensions: frozenset[str] = frozenset({"parquet"})

    def put(self, says: SegmentMetadata | None, *, ms: int = OLD_MS, rewritten: bool = False) -> str:
        ulid = str(ULID.from_timestamp(ms / 1_000))
        position = {} if rewritten else {"partition": 0, "start_offset": 0}
        name = str(DataFileName(topic=TOPIC.topic, ulid=ulid, extension="parquet", **position))
        self.write_old("data", name, ms)
        if says:
            self.footers[name] = says
        return name

    def put_manifest(self, *, ms: int = OLD_MS) -> str:
        name = f"{new_attempt_id(self.memory.load().uuid)}-m0.avro"
        self.write_old("metadata", name, ms)
        return name

    def write_old(self, folder: str, name: str, ms: int) -> None:
        path = self.folder / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (ms / 1_000, ms / 1_000))

    def search(self) -> tuple[dict[str, OrphanKind], TopicOrphans]:
        report = TopicOrphans(topic=TOPIC.topic, table=TOPIC.table)
        me = cast("Any", self)
        connected = Connected(registry=me, catalog=me, journal=me, formats=me, now_ms=NOW_MS)
        search = OrphanSearch(connected, self.memory.load(), report, lambda _: None, older_than=self.older_than)
        orphans = search.run()
        report.kept = +report.kept
        return {orphan.name: orphan.kind for orphan in orphans}, report

    @property
    def ledger(self) -> Any:
        return self

    @property
    def claims(self) -> Any:
        return self

    def check_table(self, topic: Any, table: Any) -> None:
        pass

    def reload(self, table: Any) -> ArchiveTable:
        return self.memory.load()

    def file_states(self, topic: Any, files: Mapping[str, str]) -> FileStates:
        return self.known

    def of_table(self, table: Any) -> Any:
        return self

    def files_in_table(self, names: Any) -> set[str]:
        return self.journaled & set(names)

    def files_ever_in_table(self, names: Any) -> set[str]:
        return (self.journaled | self.replaced) & set(names)

    def of_path(self, path: str) -> Any:
        return self

    @contextmanager
    def open(self, objects: Any, path: str) -> Iterator[Any]:
        name = path.rpartition("/")[2]
        if name not in self.footers:
            raise BadSegment("cut short", file=path)
        yield _Reader(self.footers[name])


@dataclass
class _Reader:
    metadata: SegmentMetadata


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    memory = MemoryCatalog(tmp_path)
    memory.apply(prepare(memory.load(), [span(0, 0, 100)], change=None, commit_id=new_id()))
    return Lake(tmp_path, memory)


def test_an_old_file_that_nobody_knows_is_an_orphan(lake: Lake) -> None:
    name = lake.put(footer(100))
    assert lake.search()[0] == {name: OrphanKind.UNKNOWN}


@pytest.mark.parametrize(
    ("state", "kind"), [(FileState.REJECTED, OrphanKind.REJECTED), (FileState.REPLACED, OrphanKind.REPLACED)]
)
def test_the_registry_says_how_it_came_to_be_one(lake: Lake, state: FileState, kind: OrphanKind) -> None:
    name = lake.put(footer(100))
    lake.known = FileStates(states={name: state})
    assert lake.search()[0] == {name: kind}


def kept(lake: Lake) -> Counter[KeptFor]:
    kinds, report = lake.search()
    assert kinds == {}
    return report.kept


def test_a_young_file_stays(lake: Lake) -> None:
    lake.put(footer(100), ms=YOUNG_MS)
    assert kept(lake) == {KeptFor.AGE: 1}


def test_the_time_in_the_name_counts_as_well_as_the_store_s(lake: Lake) -> None:
    """Clocks of stores and machines may be wrong."""
    copied_long_ago = lake.put(footer(100), ms=YOUNG_MS)
    os.utime(lake.folder / "data" / copied_long_ago, (OLD_MS / 1_000, OLD_MS / 1_000))
    copied_lately = lake.put(footer(100))
    os.utime(lake.folder / "data" / copied_lately, (YOUNG_MS / 1_000, YOUNG_MS / 1_000))
    assert kept(lake) == {KeptFor.AGE: 2}


@pytest.mark.parametrize("state", [FileState.UPLOADED, FileState.COMMITTED])
def test_what_the_registry_waits_for_stays(lake: Lake, state: FileState) -> None:
    lake.known = FileStates(states={lake.put(footer(100)): state})
    assert kept(lake) == {KeptFor.REGISTRY: 1}


def test_what_an_erasure_promised_to_readers_stays(lake: Lake) -> None:
    replaced, unknown, _ = lake.put(footer(100)), lake.put(footer(100)), lake.put_manifest()
    lake.known = FileStates(states={replaced: FileState.REPLACED}, has_promise=True)
    kinds, report = lake.search()
    assert kinds == {unknown: OrphanKind.UNKNOWN}
    assert report.kept == {KeptFor.PROMISE: 2}


def test_what_a_rewrite_in_doubt_is_about_stays(lake: Lake) -> None:
    lake.known = FileStates(rewriting=frozenset({lake.put(footer(100))}))
    assert kept(lake) == {KeptFor.REGISTRY: 1}


def test_a_claim_stands_as_long_as_it_is_renewed(lake: Lake) -> None:
    name = lake.put(footer(100))
    lake.known = FileStates(renewed={name: YOUNG_MS})
    assert kept(lake) == {KeptFor.AGE: 1}
    lake.known = FileStates(renewed={name: OLD_MS})
    assert lake.search()[0] == {name: OrphanKind.UNKNOWN}


@pytest.mark.parametrize(("start", "reason"), [(0, {KeptFor.REGISTRY: 2}), (100, {KeptFor.REGISTRY: 1})])
def test_files_that_may_have_missing_rows_stay(lake: Lake, start: int, reason: dict[KeptFor, int]) -> None:
    """A restored registry doesn't know the files that were replaced before."""
    name = lake.put(footer(100))
    lake.put(footer(), rewritten=True)
    lake.known = FileStates(lacking=(OffsetRange.half_open(0, start, start + 10),))
    orphans, report = lake.search()
    assert (orphans, report.kept) == ({} if start == 0 else {name: OrphanKind.UNKNOWN}, reason)


def test_what_the_journal_has_stays(lake: Lake) -> None:
    lake.journaled = {lake.put(footer(100))}
    assert kept(lake) == {KeptFor.JOURNAL: 1}


def test_offsets_that_the_table_has_not_reached_stay(lake: Lake) -> None:
    lake.put(footer(101))
    assert kept(lake) == {KeptFor.OFFSETS: 1}


@pytest.mark.parametrize(
    "says", [footer(100, topic="other"), footer(100, cluster="other"), footer()], ids=["topic", "cluster", "nothing"]
)
def test_a_file_whose_footer_does_not_name_this_archive_stays(lake: Lake, says: SegmentMetadata) -> None:
    lake.put(says)
    assert kept(lake) == {KeptFor.FOOTER: 1}


def test_rewritten_file_is_known_by_its_format_version(lake: Lake) -> None:
    ours = lake.put(footer(), rewritten=True)
    lake.put(footer(version=None), rewritten=True)
    kinds, report = lake.search()
    assert kinds == {ours: OrphanKind.UNKNOWN}
    assert report.kept == {KeptFor.FOOTER: 1}


def test_a_file_that_cannot_be_read_stays_and_is_told(lake: Lake) -> None:
    name = lake.put(None)
    kinds, report = lake.search()
    assert kinds == {}
    assert [path.rpartition("/")[2] for path in report.failures] == [name]
    assert not report.succeeded


def test_names_that_are_not_ours_are_not_looked_at(lake: Lake) -> None:
    for name in ("part-0.parquet", f"other-0-{0:020d}-{str(ULID.from_timestamp(1)).lower()}.parquet"):
        lake.write_old("data", name, OLD_MS)
    lake.write_old("metadata", "11111111-1111-4111-8111-111111111111-m0.avro", OLD_MS)
    kinds, report = lake.search()
    assert (kinds, report.kept) == ({}, {})


def test_old_manifest_of_a_failed_commit_is_an_orphan(lake: Lake) -> None:
    name = lake.put_manifest()
    assert lake.search()[0] == {name: OrphanKind.MANIFEST}


def test_manifest_of_a_pending_commit_stays_at_any_age(lake: Lake) -> None:
    lake.older_than = 0.0
    lake.put_manifest(ms=NOW_MS - int(MANIFEST_SECONDS - 1) * 1_000)
    assert kept(lake) == {KeptFor.AGE: 1}


def test_the_table_s_own_manifests_are_no_orphans(lake: Lake) -> None:
    for path in (lake.folder / "metadata").iterdir():
        os.utime(path, (OLD_MS / 1_000, OLD_MS / 1_000))
    assert kept(lake) == {}


def forbid(lake: Lake) -> None:
    lake.memory.change(SetPropertiesUpdate(updates={"gc.enabled": "FALSE"}))


def test_uploads_that_never_landed_go_from_a_shared_table(lake: Lake) -> None:
    name = lake.put(footer(100))
    forbid(lake)
    assert lake.search()[0] == {name: OrphanKind.UNKNOWN}


@pytest.mark.parametrize("state", [FileState.REPLACED])
def test_what_was_in_a_shared_table_stays(lake: Lake, state: FileState) -> None:
    lake.known = FileStates(states={lake.put(footer(100)): state})
    lake.put_manifest()
    forbid(lake)
    assert kept(lake) == {KeptFor.SHARED: 2}


def test_what_the_journal_ever_had_of_a_shared_table_stays(lake: Lake) -> None:
    """A rebuilt registry doesn't know files that were replaced long ago."""
    lake.replaced = {lake.put(footer(100))}
    assert len(lake.search()[0]) == 1
    forbid(lake)
    assert kept(lake) == {KeptFor.SHARED: 1}
