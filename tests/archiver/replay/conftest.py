"""What tests of replaying start from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.archive.lake import Lake


@pytest.fixture
def filled(lake: Lake, archive: Any) -> Lake:
    odd = archive.row(
        offset=0, key=None, value=b"\x00\xff", headers=[("ä".encode(), b"1"), (b"\xff", None)], timestamp=None
    )
    rest = [archive.row(offset=i, key=b"k", value=b"v%d" % i, timestamp=1_000 * i) for i in range(1, 10)]
    lake.add(archive.rows, archive.batch([odd, *rest]), 0, 12)
    other = [archive.row(offset=i, partition=1, timestamp=500 * i) for i in range(4)]
    lake.add(archive.rows, archive.batch(other), 0, 4, partition=1)
    return lake
