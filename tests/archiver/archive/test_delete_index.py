"""Which deletes apply, by Iceberg's rules."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus
from pyiceberg.typedef import Record

from archiver.archive.delete_index import DeleteIndex, without_metrics
from archiver.archive.file_columns import as_text
from tests.support.archive.listed_table import DAY, DAY_AND_EPOCH, SPECS, WHOLE, position_deletes

MONDAY, TUESDAY = as_text((1,)), as_text((2,))
BY_DAY, AS_ONE, BY_DAY_AND_EPOCH = DAY.spec_id, WHOLE.spec_id, DAY_AND_EPOCH.spec_id
ORDERS = "file:///data/orders-1.parquet"


def entry(file: DataFile, sequence: int, *, spec: int = BY_DAY) -> ManifestEntry:
    file.spec_id = spec
    numbers = {"sequence_number": sequence, "file_sequence_number": sequence}
    return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=1, data_file=file, **numbers)


def equality_deletes(path: str, *place: Any) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*place),
        record_count=1,
        file_size_in_bytes=100,
        equality_ids=[7],
        lower_bounds={7: b"\x01"},
        upper_bounds={7: b"\x02"},
    )


def index(*entries: ManifestEntry) -> DeleteIndex:
    return DeleteIndex(entries, {spec.spec_id: spec for spec in SPECS})


def paths(files: tuple[DataFile, ...]) -> list[str]:
    return [file.file_path for file in files]


@pytest.mark.parametrize(("sequence", "found"), [(4, ["e"]), (5, []), (6, [])])
def test_equality_deletes_spare_what_came_with_them_or_later(sequence: int, found: list[str]) -> None:
    assert paths(index(entry(equality_deletes("e", 1), 5)).equalities(sequence, BY_DAY, MONDAY)) == found


@pytest.mark.parametrize(("sequence", "found"), [(4, ["p"]), (5, ["p"]), (6, [])])
def test_position_deletes_reach_what_came_with_them(sequence: int, found: list[str]) -> None:
    assert paths(index(entry(position_deletes("p", [1]), 5)).positions(ORDERS, sequence, BY_DAY, MONDAY)) == found


@pytest.mark.parametrize(("spec", "place"), [(BY_DAY, TUESDAY), (BY_DAY_AND_EPOCH, MONDAY)])
def test_deletes_stay_in_their_partition_and_spec(spec: int, place: str) -> None:
    both = index(entry(equality_deletes("e", 1), 5), entry(position_deletes("p", [1]), 5))
    assert both.equalities(1, BY_DAY, MONDAY)
    assert both.positions(ORDERS, 1, BY_DAY, MONDAY)
    assert both.equalities(1, spec, place) == ()
    assert both.positions(ORDERS, 1, spec, place) == ()


def test_equality_deletes_without_a_partition_are_for_all() -> None:
    of_all = index(entry(equality_deletes("e"), 5, spec=AS_ONE))
    assert paths(of_all.equalities(1, BY_DAY, TUESDAY)) == ["e"]
    assert paths(of_all.equalities(1, BY_DAY_AND_EPOCH, MONDAY)) == ["e"]


def test_position_deletes_that_name_their_file_are_for_it_alone() -> None:
    mine = position_deletes("mine", [1], of=(ORDERS, ORDERS))
    theirs = position_deletes("other", [1], of=("file:///data/z.parquet", "file:///data/z.parquet"))
    positions = index(entry(theirs, 5), entry(mine, 5)).positions(ORDERS, 1, BY_DAY, MONDAY)
    assert paths(positions) == ["mine"]


def test_an_index_without_deletes_finds_none() -> None:
    assert index().positions(ORDERS, 1, BY_DAY, MONDAY) == ()
    assert index().equalities(1, BY_DAY, MONDAY) == ()


def test_entries_keep_only_the_bounds_that_are_needed() -> None:
    slim = without_metrics(entry(equality_deletes("e", 1), 5)).data_file
    assert (slim.file_path, slim.equality_ids, slim.spec_id, slim.partition[0]) == ("e", [7], BY_DAY, 1)
    assert (slim.lower_bounds, slim.upper_bounds) == ({}, {})
    kept = without_metrics(entry(position_deletes("p", [1], of=(ORDERS, ORDERS)), 5))
    assert paths(index(kept).positions(ORDERS, 1, BY_DAY, MONDAY)) == ["p"]
    assert index(kept).positions("file:///data/orders-2.parquet", 1, BY_DAY, MONDAY) == ()
