"""Orphans that no snapshot ever named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table.snapshots import Summary
from pyiceberg.table.update import RemoveSnapshotsUpdate
from ulid import ULID

from archiver.storage.file_names import DataFileName
from archiver.upkeep.orphans.never_landed import CLOCKS_APART_MS, never_landed
from archiver.upkeep.orphans.references import References
from archiver.upkeep.orphans.report import Orphan, OrphanKind
from catalog.iceberg import properties as keys
from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.attempt_names import new_attempt_id
from catalog.model import TranslatedRange, new_id
from tests.support.catalog.memory import TOPIC, MemoryCatalog, span

HOUR = 3_600_000


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    catalog = MemoryCatalog(tmp_path)
    for number in range(6):
        catalog.send(attempt(catalog, number))
    return catalog


def attempt(catalog: MemoryCatalog, number: int, *, ranges: Sequence[TranslatedRange] | None = None) -> Attempt:
    return prepare(catalog.load(), ranges or [span(0, number, number + 1)], change=None, commit_id=new_id())


def raced(catalog: MemoryCatalog) -> Attempt:
    ranges = [span(0, 7, 8)]
    lost = attempt(catalog, 7, ranges=ranges)
    catalog.send(attempt(catalog, 6))
    catalog.send(attempt(catalog, 7, ranges=ranges))
    return lost


def expire(catalog: MemoryCatalog, *numbers: int) -> None:
    ids = [catalog.metadata.snapshots[number].snapshot_id for number in numbers]
    catalog.change(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": ids}))


def data(ms: int, kind: OrphanKind = OrphanKind.UNKNOWN, *, name: str = "") -> Orphan:
    ulid = str(ULID.from_timestamp(ms / 1_000))
    name = name or str(DataFileName(topic=TOPIC.topic, ulid=ulid, extension="parquet", partition=0, start_offset=0))
    return Orphan(path=f"file:///{name}", name=name, size=1, modified_ms=ms, kind=kind, ulid=ulid)


def manifests(attempt: Attempt) -> list[Orphan]:
    return [
        Orphan(path=path, name=path.rpartition("/")[2], size=1, modified_ms=0, kind=OrphanKind.MANIFEST)
        for path in attempt.written
    ]


def is_certain(catalog: MemoryCatalog, *orphans: Orphan) -> bool:
    references = References()
    references.look(catalog.load, ())
    certain = never_landed(catalog.load(), orphans, references)
    assert certain in (frozenset(), frozenset(orphan.path for orphan in orphans))
    return bool(certain)


def time_of(catalog: MemoryCatalog, number: int) -> int:
    return int(catalog.metadata.snapshots[number].timestamp_ms)


def test_every_upload_while_no_snapshot_has_expired(catalog: MemoryCatalog) -> None:
    first = time_of(catalog, 0)
    assert is_certain(catalog, data(first - 300 * 24 * HOUR), data(first + HOUR))


def test_upload_to_a_table_without_snapshots(tmp_path: Path) -> None:
    assert is_certain(MemoryCatalog(tmp_path), data(1_700_000_000_000))


def test_what_a_rewrite_replaced_was_named(catalog: MemoryCatalog) -> None:
    assert not is_certain(catalog, data(time_of(catalog, 5) + HOUR, OrphanKind.REPLACED))


def test_file_of_others_is_not_judged(catalog: MemoryCatalog) -> None:
    assert not is_certain(catalog, data(time_of(catalog, 5), name="00000-0-copy.parquet"))


def test_upload_older_than_oldest_snapshot_may_be_named(catalog: MemoryCatalog) -> None:
    expire(catalog, 0, 1)
    oldest = time_of(catalog, 0)
    assert not is_certain(catalog, data(oldest - HOUR))
    assert not is_certain(catalog, data(oldest + CLOCKS_APART_MS)), "clocks may be apart"
    assert is_certain(catalog, data(oldest + CLOCKS_APART_MS + 1))


def test_gap_in_the_middle_counts(catalog: MemoryCatalog) -> None:
    """Spark may expire a snapshot by its id: an older retained one proves nothing."""
    expire(catalog, 3)
    assert not is_certain(catalog, data(time_of(catalog, 2) + 1))
    assert is_certain(catalog, data(time_of(catalog, 3) + CLOCKS_APART_MS + 1))


def test_nothing_is_certain_where_the_last_snapshot_expired(catalog: MemoryCatalog) -> None:
    catalog.metadata = catalog.metadata.model_copy(update={"last_sequence_number": 9})
    assert not is_certain(catalog, data(time_of(catalog, 5) + 300 * HOUR))


def test_manifests_of_an_attempt_that_lost_the_race(catalog: MemoryCatalog) -> None:
    assert is_certain(catalog, *manifests(raced(catalog)))


def test_manifests_of_an_attempt_beyond_the_last_snapshot(catalog: MemoryCatalog) -> None:
    """Such an attempt has a file that never landed, too."""
    name = data(time_of(catalog, 0)).name
    range_ = span(0, 6, 7)
    upload = replace(range_, files=tuple(replace(file, path=f"file:///{name}") for file in range_.files))
    orphan = data(time_of(catalog, 0), name=name)
    assert is_certain(catalog, orphan, *manifests(attempt(catalog, 6, ranges=[upload])))


def test_snapshots_of_a_table_that_was_restored(catalog: MemoryCatalog) -> None:
    """Its catalog lost the last snapshots and reuses their numbers; a copy may still have them."""
    before = catalog.metadata
    landed = attempt(catalog, 6)
    catalog.send(landed)
    catalog.metadata = before
    assert not is_certain(catalog, *manifests(landed))
    catalog.send(attempt(catalog, 6))
    assert not is_certain(catalog, *manifests(landed))


def test_refilled_file_does_not_vouch_for_its_old_manifest(catalog: MemoryCatalog) -> None:
    """The table was registered again from older metadata; another table may be of the newer state."""
    before = catalog.metadata
    ranges = [span(0, 6, 7)]
    landed = attempt(catalog, 6, ranges=ranges)
    catalog.send(landed)
    catalog.metadata = before
    catalog.send(attempt(catalog, 6, ranges=ranges))
    *earlier, newest = catalog.metadata.snapshots
    assert newest.summary is not None
    summary = Summary(newest.summary.operation, **newest.summary.additional_properties, **{keys.REFILLED: "{}"})
    refill = newest.model_copy(update={"summary": summary})
    catalog.metadata = catalog.metadata.model_copy(update={"snapshots": [*earlier, refill]})
    assert not is_certain(catalog, *manifests(landed))


def test_attempt_whose_manifests_are_gone(catalog: MemoryCatalog) -> None:
    lost = raced(catalog)
    alone = [manifest for manifest in manifests(lost) if manifest.name.startswith("snap-")]
    for path in lost.written:
        if not path.rpartition("/")[2].startswith("snap-"):
            Path(path.removeprefix("file://")).unlink()
    assert is_certain(catalog, *alone)


def test_manifests_of_an_expired_snapshot_stay(catalog: MemoryCatalog) -> None:
    landed = attempt(catalog, 6)
    catalog.send(landed)
    catalog.send(attempt(catalog, 7))
    expire(catalog, 6)
    assert not is_certain(catalog, *manifests(landed))


def test_manifests_of_the_number_of_an_expired_snapshot_stay(catalog: MemoryCatalog) -> None:
    """Of two attempts for one number, nothing shows which one landed."""
    lost = raced(catalog)
    expire(catalog, 6)
    assert not is_certain(catalog, *manifests(lost))


def test_manifest_without_its_list_stays(catalog: MemoryCatalog) -> None:
    lost = raced(catalog)
    alone = [manifest for manifest in manifests(lost) if not manifest.name.startswith("snap-")]
    assert alone
    assert not is_certain(catalog, *alone)


@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"no avro"])
def test_list_that_cannot_be_read_stays(catalog: MemoryCatalog, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / f"snap-1-0-{new_attempt_id(catalog.load().uuid)}.avro"
    path.write_bytes(content)
    orphan = Orphan(path=path.as_uri(), name=path.name, size=1, modified_ms=0, kind=OrphanKind.MANIFEST)
    assert not is_certain(catalog, orphan)
