"""Facts of a file about its blocks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from archiver.archive.mappings import KnownMappings, NoMappings
from archiver.records.block_facts import BlockFacts
from archiver.records.where import Where
from archiver.storage.segment import Block, SegmentReader
from archiver.storage.value_sets import ValueSets
from schema_mapping.columns.fixed import HEADER_KEY_ID, RAW_HEADER_KEY_ID

KEY_ID = 100


class Reader:
    def __init__(self) -> None:
        self.reads = 0

    @property
    def value_sets(self) -> ValueSets:
        self.reads += 1
        names = frozenset({b"trace"})
        return ValueSets({KEY_ID: frozenset({b"a"}), HEADER_KEY_ID: names, RAW_HEADER_KEY_ID: names})

    def value_bounds(self, _block: Block, _field_id: int) -> None:
        return None

    def set_counts(self, _block: Block, _ids: frozenset[int]) -> dict[int, int]:
        return {}


def judged(text: str, key_id: int | None = KEY_ID) -> tuple[bool, int]:
    reader, block = Reader(), cast("Block", SimpleNamespace(rows=10))
    facts = BlockFacts(cast("SegmentReader", reader), block, {}, KnownMappings("orders", NoMappings()), key_id)
    return facts.by_sets(Where.parse(text)), reader.reads


@pytest.mark.parametrize(
    "text", ["offset = 5", "partition = 0", "time > 1000 and offset != 3", "value contains 'a'", "key is null"]
)
def test_sets_are_not_read_for_numbers(text: str) -> None:
    assert judged(text) == (True, 0)
    assert judged(text, None) == (True, 0)


def test_sets_are_read_for_keys_and_headers() -> None:
    assert judged("key = 'b'") == (False, 1)
    assert judged("key = 'b'", None) == (True, 0)
    assert judged("header['other'] is null") == (False, 1)
    assert judged("header['trace'] is null") == (True, 1)
