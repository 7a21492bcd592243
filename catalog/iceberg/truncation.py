"""Iceberg's truncation may wrap: `truncate(10, -2147483648)` of an int is 2147483646.

Engines prune such files. Powers of two don't wrap.
"""

from __future__ import annotations

import re
from typing import Final

from pyiceberg.types import IcebergType, IntegerType, LongType

from schema_mapping.columns.fixed_ids import OFFSET_ID, PARTITION_ID

NEVER_NEGATIVE: Final = frozenset((PARTITION_ID, OFFSET_ID))
"""The archiver's columns of whole numbers without such values."""
_TRUNCATE: Final = re.compile(r"truncate\[(\d+)\]")


def wraps(transform: str, field_id: int, kind: IcebergType) -> bool:
    return field_id not in NEVER_NEGATIVE and highest_wrapped(transform, kind) is not None


def highest_wrapped(transform: str, kind: IcebergType) -> int | None:
    """The highest value whose transform exceeds it, if any."""
    width = _TRUNCATE.fullmatch(transform)
    if width is None or not isinstance(kind, (IntegerType, LongType)):
        return None
    over = lowest_of(kind) % int(width[1])
    return lowest_of(kind) + int(width[1]) - over - 1 if over else None


def lowest_of(kind: IcebergType) -> int:
    return -(1 << (63 if isinstance(kind, LongType) else 31))
