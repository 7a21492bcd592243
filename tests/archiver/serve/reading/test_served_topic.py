"""Which new files fill gaps that clients may have been given already."""

from __future__ import annotations

import pytest

from archiver.archive.table_files import Bounds, TableFile
from archiver.serve.reading.served_topic import begins_below


def file(partitions: Bounds | None, offsets: Bounds | None) -> TableFile:
    return TableFile(
        path="file.parquet",
        format="PARQUET",
        rows=1,
        size_bytes=1,
        spec_id=0,
        partition_values=(0,),
        partitions=partitions,
        offsets=offsets,
        latest=None,
    )


@pytest.mark.parametrize(
    ("partitions", "offsets", "fills"),
    [
        (Bounds(0, 0), Bounds(100, 199), False),
        (Bounds(0, 0), Bounds(99, 199), True),
        (Bounds(0, 1), Bounds(20, 30), True),
        (Bounds(1, 1), Bounds(20, 30), False),
        (Bounds(2, 2), Bounds(0, 9), False),
        (None, Bounds(500, 600), True),
        (Bounds(0, 0), None, True),
    ],
)
def test_a_file_below_the_end_of_its_partition_fills_a_gap(
    partitions: Bounds | None, offsets: Bounds | None, fills: bool
) -> None:
    assert begins_below(file(partitions, offsets), {0: 100, 1: 20}) is fills
