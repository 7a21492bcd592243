"""Files with unreadable rows stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver.archive.table_files import ManifestReader
from archiver.errors import BadSegment, UpkeepError
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.upkeep.removal.components import Component
from archiver.upkeep.removal.conditions import AtOffsets, Below, Condition
from archiver.upkeep.removal.rewriting import Removal, RemovalTask, remove_rows
from archiver.upkeep.removal.row_account import Fate
from catalog.registry.removable import RemovableRange
from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import TOPIC, Lake
from tests.support.storage.parquet_pages import page_headers, without_page

ROWS = 40
EDGE = 15
REMOVALS: list[tuple[Fate, Condition]] = [
    ("retired", Below({0: EDGE})),
    ("erased", AtOffsets({0: ((EDGE, EDGE + 1),)})),
]


@pytest.fixture
def local(lake: Lake, archive: Any) -> Path:
    path = lake.add(archive.rows, archive.batch(rows_of(archive, range(ROWS))), 0, ROWS)
    assert path is not None
    return Path(path.removeprefix("file://"))


def task_of(lake: Lake, archive: Any, fate: Fate, condition: Condition) -> RemovalTask:
    files = tuple(ManifestReader().files(lake.load(TOPIC.topic)))
    paths = tuple(file.path for file in files)
    whole = RemovableRange(id="r", partition=0, start_offset=0, end_offset=ROWS, paths=paths, rows=ROWS, expected=ROWS)
    target = RewriteTarget(
        topic=TOPIC.topic,
        mappings={1: archive.rows.text},
        table_properties={},
        bloom_filters={},
        objects=ObjectStore.of({}),
        formats=FORMATS,
        spool=lake.folder / "spool",
    )
    component = Component(ranges=(whole,), files=files, recorded=paths, has_foreign=False)
    return RemovalTask(
        target=target, component=component, removal=Removal(condition=condition, fate=fate, why="asked for")
    )


def damaged(local: Path) -> Iterator[str]:
    whole = local.read_bytes()
    for page in page_headers(whole):
        if page.is_data:
            local.write_bytes(without_page(whole, page))
            yield page.column
    local.write_bytes(whole)


@pytest.mark.parametrize(("fate", "condition"), REMOVALS)
def test_a_file_with_a_page_that_readers_leave_out_is_refused(
    lake: Lake, archive: Any, local: Path, fate: Fate, condition: Condition
) -> None:
    task, before, columns = task_of(lake, archive, fate, condition), sorted(local.parent.iterdir()), set()
    for column in damaged(local):
        with pytest.raises(BadSegment):
            remove_rows(task)
        columns.add(column)
    assert {"key.__raw__", "val.__raw__", "kafka.offset", "kafka.producer_id"} <= columns
    assert sorted(local.parent.iterdir()) == before
    done = remove_rows(task)
    assert done.rows == (EDGE if fate == "retired" else 1)
    assert done.group is not None


@pytest.mark.parametrize("is_sorted", [True, False])
def test_file_without_some_rows_claims_its_actual_order(lake: Lake, archive: Any, *, is_sorted: bool) -> None:
    offsets = [*range(ROWS)] if is_sorted else [*range(ROWS // 2, ROWS), *range(ROWS // 2)]
    lake.add(archive.rows, archive.batch(rows_of(archive, offsets)), 0, ROWS)
    done = remove_rows(task_of(lake, archive, "erased", AtOffsets({0: ((EDGE, EDGE + 1),)})))
    assert done.group is not None
    (new,) = done.group.files
    assert new.is_sorted is is_sorted
    with FORMATS.written.open(ObjectStore(), new.file.path) as reader:
        assert [block.is_sorted for block in reader.blocks()] == [is_sorted]


@pytest.mark.parametrize("expected", [ROWS, ROWS - EDGE])
def test_retire_refuses_to_pass_missing_rows(lake: Lake, archive: Any, expected: int) -> None:
    """No row below the edge is in the file: never archived, or deleted by another engine."""
    lake.add(archive.rows, archive.batch(rows_of(archive, range(EDGE, ROWS))), 0, ROWS)
    task = task_of(lake, archive, "retired", Below({0: EDGE}))
    (whole,) = task.component.ranges
    task = replace(task, component=replace(task.component, ranges=(replace(whole, rows=expected, expected=expected),)))
    if expected == ROWS - EDGE:
        assert remove_rows(task).group is None
        return
    with pytest.raises(UpkeepError, match="refill TOPIC") as error:
        remove_rows(task)
    assert error.value.context["missing"] == EDGE


def test_retire_refuses_to_pass_a_range_whose_file_is_gone(lake: Lake, archive: Any, local: Path) -> None:
    task = task_of(lake, archive, "retired", Below({0: EDGE}))
    gone = replace(task, component=replace(task.component, files=()))
    with pytest.raises(UpkeepError, match="refill TOPIC"):
        remove_rows(gone)
    assert local.exists()


def test_retire_counts_all_files_of_a_range(lake: Lake, archive: Any) -> None:
    """Offsets below the edge were markers of transactions."""
    for first in (EDGE, (EDGE + ROWS) // 2):
        end = (EDGE + ROWS) // 2 if first == EDGE else ROWS
        lake.add(archive.rows, archive.batch(rows_of(archive, range(first, end))), first, end)
    task = task_of(lake, archive, "retired", Below({0: EDGE}))
    (whole,) = task.component.ranges
    rows = ROWS - EDGE
    task = replace(task, component=replace(task.component, ranges=(replace(whole, rows=rows, expected=rows),)))
    assert len(task.component.files) == 2
    assert remove_rows(task).group is None


@pytest.mark.parametrize("fate", ["retired", "erased"])
@pytest.mark.parametrize("is_full", [True, False])
def test_missing_rows_below_the_first_offset_are_retired(
    lake: Lake, archive: Any, fate: Fate, *, is_full: bool
) -> None:
    """The first offset passed rows that another engine had deleted. A gap after it may hide more."""
    left = [offset for offset in range(EDGE, ROWS) if is_full or offset != ROWS - 3]
    lake.add(archive.rows, archive.batch(rows_of(archive, left)), 0, ROWS)
    condition: Condition = Below({0: EDGE + 5}) if fate == "retired" else AtOffsets({0: ((EDGE, EDGE + 5),)})
    task = task_of(lake, archive, fate, condition)
    (whole,) = task.component.ranges
    expected = ROWS - EDGE + 4
    ranges = (replace(whole, rows=len(left), expected=expected),)
    task = replace(task, component=replace(task.component, ranges=ranges), first_offsets={0: EDGE})
    if not is_full:
        with pytest.raises(UpkeepError, match="refill TOPIC"):
            remove_rows(task)
        return
    done = remove_rows(task)
    assert done.group is not None
    (span,) = done.group.all_spans
    assert (span.rows, span.removed, span.gone_digest) == (ROWS - EDGE - 5, 0, None)
    assert (span.erased, span.retired) == ((0, 9) if fate == "retired" else (5, 4))


@pytest.mark.parametrize("dry_run", [False, True])
def test_keys_of_removed_rows_are_named(lake: Lake, archive: Any, dry_run: bool) -> None:
    rows = [archive.row(offset=n, key=None if n == 3 else b"k%d" % (n % 4)) for n in range(ROWS)]
    lake.add(archive.rows, archive.batch(rows), 0, ROWS)
    task = task_of(lake, archive, "erased", AtOffsets({0: ((2, 4), (5, 6))}))
    removal = replace(task.removal, keys=frozenset({b"k1", b"k2", b"k3", b"k0"}))
    assert remove_rows(replace(task, removal=removal, dry_run=dry_run)).keys == {b"k1", b"k2"}
