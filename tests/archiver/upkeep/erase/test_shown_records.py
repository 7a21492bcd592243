"""Records that an erasure shows first."""

from __future__ import annotations

import json

from archiver.upkeep.erase.shown_records import shown_records
from tests.support.archive.lake import Lake


def test_records_that_were_retired_are_not_shown(filled: Lake) -> None:
    filled.retire(4)
    lines = [json.loads(line) for line in shown_records(filled.archive(), [(0, 1, 2), (0, 2, 6), (1, 1, 2)])]
    assert [(line["partition"], line["offset"]) for line in lines] == [(0, 4), (0, 5)]
