"""Accepted losses as ranges."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from catalog.model import PartitionOffset, TranslatedRange, new_id
from catalog.offset_range import OffsetRange


def lost_ranges(
    topic: str,
    lost: Iterable[OffsetRange],
    *,
    known: Mapping[int, PartitionOffset],
    schema_version: int,
) -> tuple[TranslatedRange, ...]:
    """Ranges without a file advance the next offset. `known` is the archived end before."""
    return tuple(
        TranslatedRange(
            id=new_id(),
            topic=topic,
            partition=offsets.partition,
            start_offset=offsets.first,
            end_offset=offsets.end,
            schema_version=schema_version,
            leader_epoch=known[offsets.partition].leader_epoch if offsets.partition in known else -1,
            files=(),
            created_ms=time.time_ns() // 1_000_000,
            lost=True,
        )
        for offsets in sorted(lost)
    )
