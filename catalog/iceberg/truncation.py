"""Where Iceberg's truncation of whole numbers wraps: below the lowest multiple of the width there is no number.

Iceberg truncates downwards, and its libraries wrap: of an int, `truncate(10, -2147483648)` is 2147483646. An engine
looks for such rows below, and prunes their files. A width that is a power of two has no such numbers.
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
    """Return whether the transform of some values of the column is not below them."""
    return field_id not in NEVER_NEGATIVE and highest_wrapped(transform, kind) is not None


def highest_wrapped(transform: str, kind: IcebergType) -> int | None:
    """Return the highest value whose transform wraps. None if none does."""
    width = _TRUNCATE.fullmatch(transform)
    if width is None or not isinstance(kind, (IntegerType, LongType)):
        return None
    over = lowest_of(kind) % int(width[1])
    return lowest_of(kind) + int(width[1]) - over - 1 if over else None


def lowest_of(kind: IcebergType) -> int:
    """Return the lowest number of an int or long."""
    return -(1 << (63 if isinstance(kind, LongType) else 31))
