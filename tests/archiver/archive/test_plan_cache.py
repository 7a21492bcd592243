"""The manifest cache changes no plan."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from archiver.archive.plan_cache import FOLDER, LEAST_FILES, UNUSED_SECONDS, PlanCache
from archiver.archive.table_files import ManifestReader, TableFile
from tests.support.archive.listed_table import ListedTable, data_file, position_deletes

FILES = LEAST_FILES + 10


@pytest.fixture
def listed(tmp_path: Path) -> ListedTable:
    table = ListedTable(tmp_path)
    table.add(
        [
            data_file(
                f"file:///data/{value}",
                [value % 3],
                partitions=(0, value) if value % 5 else None,
                offsets=(value, value),
            )
            for value in range(FILES)
        ]
    )
    return table


@pytest.fixture
def cache(tmp_path: Path) -> PlanCache:
    result = PlanCache.below(tmp_path / "spool")
    assert result is not None
    return result


def planned(listed: ListedTable, cache: PlanCache | None, counted: frozenset[int] = frozenset()) -> list[TableFile]:
    return list(ManifestReader(counted, cache).files(listed.table()))


def kept(cache: PlanCache) -> list[Path]:
    return list(cache.folder.iterdir())


def lose(listed: ListedTable) -> None:
    for manifest in listed.manifests:
        Path(manifest.manifest_path.removeprefix("file://")).unlink()


def test_the_next_process_reads_no_manifest(listed: ListedTable, cache: PlanCache) -> None:
    first = planned(listed, cache)
    assert first == planned(listed, None)
    table = listed.table()
    lose(listed)
    assert list(ManifestReader(cache=cache).files(table)) == first


def test_only_this_user_can_read_it(listed: ListedTable, cache: PlanCache) -> None:
    planned(listed, cache)
    (file,) = kept(cache)
    assert file.stat().st_mode & 0o777 == 0o600
    assert cache.folder.stat().st_mode & 0o777 == 0o700


def test_a_damaged_cache_costs_only_time(listed: ListedTable, cache: PlanCache) -> None:
    expected = planned(listed, cache)
    (file,) = kept(cache)
    whole = file.read_bytes()
    noise = random.Random(5)
    for position in [0, 31, 32, len(whole) - 1, *noise.sample(range(len(whole)), 40)]:
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << noise.randrange(8)]) + whole[position + 1 :])
        assert cache.find(listed.manifests[0], frozenset()) is None
    for length in (0, 10, 32, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert cache.find(listed.manifests[0], frozenset()) is None
    assert planned(listed, cache) == expected
    assert file.read_bytes() == whole


def test_another_manifest_s_columns_are_not_believed(listed: ListedTable, cache: PlanCache) -> None:
    planned(listed, cache)
    (first,) = kept(cache)
    listed.manifests.clear()
    listed.add([data_file(f"file:///data/other-{value}", [1]) for value in range(FILES)])
    expected = planned(listed, cache)
    (second,) = set(kept(cache)) - {first}
    second.write_bytes(first.read_bytes())
    assert planned(listed, cache) == expected


def test_what_a_list_says_of_a_manifest_counts(listed: ListedTable, cache: PlanCache) -> None:
    """Entries inherit sequence numbers from the list, which decide about deleted rows."""
    planned(listed, cache)
    listed.add([position_deletes("file:///data/deletes", [1])], deletes=True, sequence=5)
    (manifest, _) = listed.manifests
    for sequence, deleted in ((4, True), (6, False)):
        manifest.sequence_number = sequence
        assert any(file.has_deletes for file in planned(listed, cache)) is deleted


def test_null_counts_that_are_asked_for_are_there(listed: ListedTable, cache: PlanCache) -> None:
    planned(listed, cache)
    counted = frozenset({11})
    for _ in range(2):
        assert ManifestReader(counted, cache).files(listed.table()).columns["nulls_11"].to_pylist() == [0] * FILES


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(mode=0o700)
    (tmp_path / FOLDER).chmod(0o770)
    assert PlanCache.below(tmp_path) is None
    (tmp_path / FOLDER).rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / FOLDER).symlink_to(tmp_path / "elsewhere")
    assert PlanCache.below(tmp_path) is None


def test_a_spool_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    for mode in (0o770, 0o707, 0o1777):
        spool.mkdir(exist_ok=True)
        (spool / FOLDER).mkdir(mode=0o700, exist_ok=True)
        spool.chmod(mode)
        assert PlanCache.below(spool) is None, f"{mode:o}: its folder can be swapped"
    spool.chmod(0o755)
    assert PlanCache.below(spool) == PlanCache(spool / FOLDER), "others may look at the names in it"
    link = tmp_path / "link"
    link.symlink_to(spool)
    assert PlanCache.below(link) is None


def test_small_manifests_are_not_kept(tmp_path: Path, cache: PlanCache) -> None:
    listed = ListedTable(tmp_path)
    listed.add([data_file("file:///data/1", [1])])
    assert len(planned(listed, cache)) == 1
    assert kept(cache) == []


def test_what_nobody_asks_for_goes(listed: ListedTable, cache: PlanCache) -> None:
    planned(listed, cache)
    (used,) = kept(cache)
    unused = cache.folder / "unused.columns"
    unused.write_bytes(b"")
    month_ago = time.time() - UNUSED_SECONDS - 60
    for value in (used, unused):
        os.utime(value, (month_ago, month_ago))
    planned(listed, cache)
    assert kept(cache) == [used]


def test_no_room_is_no_failure(listed: ListedTable, cache: PlanCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fdopen", _full)
    assert planned(listed, cache) == planned(listed, None)
    assert kept(cache) == []


def _full(number: int, _: str) -> None:
    os.close(number)
    raise OSError(28, "No space left on device")


def test_one_that_cannot_be_removed_is_told_and_the_others_go(
    cache: PlanCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "abc":
        (cache.folder / name).write_bytes(b"jane")
    refused: list[Path] = []
    unlink = Path.unlink

    def refuse_first(path: Path, missing_ok: bool = False) -> None:
        if not refused:
            refused.append(path)
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as denied:
        denied.setattr(Path, "unlink", refuse_first)
        cache.forget_all()
    assert kept(cache) == refused
    assert f"{refused[0]}, which has values of partitions, can't be removed" in caplog.text
    cache.forget_all()
    assert kept(cache) == []
    cache.folder.rmdir()
    cache.forget_all()
    assert f"{cache.folder} can't be emptied" in caplog.text
