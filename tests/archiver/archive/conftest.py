"""Fixtures for reading an archive."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import Lake


@pytest.fixture
def filled(lake: Lake, archive: Any) -> list[Any]:
    everything = []
    for partition, start, end in ((0, 0, 100), (1, 0, 50), (0, 100, 200), (0, 205, 300), (1, 50, 60)):
        rows = rows_of(archive, (value for value in range(start, end) if value % 13), partition=partition)
        lake.add(archive.rows, archive.batch(rows), min(start, 200), end, partition=partition)
        everything += rows
    return everything
