"""Columns that need no decoding, by a checksummed footer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from archiver.storage.parquet.leaves import ParquetLeaf
from schema_mapping import names

_SMALL_DICTIONARY: Final = 16 << 10
"""The most bytes of a dictionary, compressed. Arrow makes an array of it for each batch of rows."""
_NO_STRUCT: Final = frozenset(("list", "key_value"))
_OURS: Final = "__"


def null_leaves(leaves: Collection[ParquetLeaf], chunk: Callable[[int], pq.ColumnChunkMetaData]) -> frozenset[int]:
    """Return ids of null columns that can be left out.

    Every struct and list keeps a column that shows its nulls and lengths. Keys and values of maps and elements of lists
    stay.
    """
    without = [leaf for leaf in leaves if _is_member(leaf) and _is_null(chunk(leaf.index))]
    left_out = {leaf.index for leaf in without}
    groups: set[tuple[str, ...]] = set()
    for leaf in leaves:
        if leaf.index not in left_out:
            groups |= _groups(leaf)
    for leaf in without:
        if leaf.parts[:-1] not in groups:
            left_out.discard(leaf.index)
            groups |= _groups(leaf)
    return frozenset(leaf.field_id for leaf in without if leaf.index in left_out and leaf.field_id is not None)


def dictionary_leaves(leaves: Iterable[ParquetLeaf], footer: pq.FileMetaData) -> list[str]:
    """Return texts below `val` with a small dictionary in each row group."""
    return [
        leaf.path
        for leaf in leaves
        if leaf.parts[0] == names.VAL
        and pa.types.is_string(leaf.type)
        and not leaf.parts[-1].startswith(_OURS)
        and all(_has_small(footer.row_group(at).column(leaf.index)) for at in range(footer.num_row_groups))
    ]


def _is_member(leaf: ParquetLeaf) -> bool:
    return len(leaf.parts) > 1 and leaf.field_id is not None and _NO_STRUCT.isdisjoint(leaf.parts[-2:-1])


def _groups(leaf: ParquetLeaf) -> set[tuple[str, ...]]:
    return {leaf.parts[:depth] for depth in range(1, len(leaf.parts))}


def _is_null(chunk: pq.ColumnChunkMetaData) -> bool:
    statistics = chunk.statistics
    return statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values


def _has_small(chunk: pq.ColumnChunkMetaData) -> bool:
    start = chunk.dictionary_page_offset
    return start is not None and 0 < chunk.data_page_offset - start <= _SMALL_DICTIONARY
