"""Whether the rows of a block can be streamed, or must be sorted."""

from __future__ import annotations

from typing import Final

from archiver.storage.row_order import RowOrder
from archiver.storage.segment import Block, SegmentReader
from schema_mapping.columns.fixed_ids import OFFSET_ID, PARTITION_ID

_PLACE_IDS: Final = frozenset({PARTITION_ID, OFFSET_ID})


def is_trusted(reader: SegmentReader, block: Block) -> bool:
    """Earlier archivers wrote wrong claims into refilled copies, which name no range."""
    return block.is_sorted and reader.metadata.origin is not None


def is_in_order(reader: SegmentReader, block: Block) -> bool:
    if not block.is_sorted or is_trusted(reader, block):
        return block.is_sorted
    order = RowOrder()
    return all(order.add([rows]) and order.is_sorted for rows in reader.read(block, _PLACE_IDS))
