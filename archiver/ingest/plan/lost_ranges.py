"""Accepted gaps as ranges without a file: they move the offsets on, and say of themselves that records were lost."""

from __future__ import annotations

import time
from collections.abc import Mapping

from catalog.model import PartitionOffset, TranslatedRange, new_id


def lost_ranges(
    topic: str,
    lost: Mapping[int, tuple[int, int]],
    *,
    known: Mapping[int, PartitionOffset],
    schema_version: int,
) -> tuple[TranslatedRange, ...]:
    """One range for each partition's lost offsets (half open); `known` is where the partitions stood before."""
    return tuple(
        TranslatedRange(
            id=new_id(),
            topic=topic,
            partition=partition,
            start_offset=start,
            end_offset=end,
            schema_version=schema_version,
            leader_epoch=known[partition].leader_epoch if partition in known else -1,
            files=(),
            created_ms=time.time_ns() // 1_000_000,
            lost=True,
        )
        for partition, (start, end) in sorted(lost.items())
    )
