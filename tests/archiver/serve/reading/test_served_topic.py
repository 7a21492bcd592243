"""New files that fill served gaps."""

from __future__ import annotations

import pytest

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.serve.reading.served_topic import begins_below


def file(partitions: ValueBounds | None, offsets: ValueBounds | None) -> TableFile:
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
        (ValueBounds(0, 0), ValueBounds(100, 199), False),
        (ValueBounds(0, 0), ValueBounds(99, 199), True),
        (ValueBounds(0, 1), ValueBounds(20, 30), True),
        (ValueBounds(1, 1), ValueBounds(20, 30), False),
        (ValueBounds(2, 2), ValueBounds(0, 9), False),
        (None, ValueBounds(500, 600), True),
        (ValueBounds(0, 0), None, True),
    ],
)
def test_a_file_below_the_end_of_its_partition_fills_a_gap(
    partitions: ValueBounds | None, offsets: ValueBounds | None, fills: bool
) -> None:
    assert begins_below(file(partitions, offsets), {0: 100, 1: 20}) is fills
