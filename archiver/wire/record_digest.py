"""The digest of records, independent of order (docs/digest.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.wire.digest import sum_of_hashes
from archiver.wire.record_sizes import sizes_of
from catalog.digests import digest_text

_LOG_APPEND_TIME = pa.scalar(1, pa.int32())
_SEEN = ("partition", "offset", "timestamp_type", "timestamp", "key", "value", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDigest:
    """A sum modulo 2^128: digests of disjoint sets add up.

    `largest` is a record's most bytes in a batch, None if unknown.
    """

    total: int = 0
    largest: int | None = field(default=0, compare=False)

    @classmethod
    def of_fetched(cls, records: pa.RecordBatch, *, partition: int) -> Self:
        """`records` have the columns of `archiver.wire.RECORDS`."""
        types = records.column("timestamp_type")
        is_append = pc.equal(types, _LOG_APPEND_TIME)
        return cls(
            total=sum_of_hashes(
                pa.array(np.full(records.num_rows, partition, np.int32)),
                records.column("offset"),
                types,
                pc.if_else(is_append, records.column("append_timestamp"), records.column("timestamp")),
                *(records.column(name) for name in ("key", "value", "headers")),
            ),
            largest=None,
        )

    @classmethod
    def of_seen(cls, records: pa.RecordBatch) -> Self:
        """`records` have the columns of `archiver.archive.records.RECORDS` and more."""
        total = sum_of_hashes(*(records.column(name) for name in _SEEN))
        return cls(total=total, largest=int(sizes_of(records).max()) if records.num_rows else 0)

    def __add__(self, other: RecordDigest) -> RecordDigest:
        largest = None
        if self.largest is not None and other.largest is not None:
            largest = max(self.largest, other.largest)
        return RecordDigest(total=(self.total + other.total) % (1 << 128), largest=largest)

    @property
    def text(self) -> str:
        """32 hexadecimal digits, as in footers and the registry."""
        return digest_text(self.total)
