"""Digest and fit of the schema, summed over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from archiver.files.recognition import Recognizer
from archiver.wire.record_digest import RecordDigest
from catalog.recognition import Recognition


@dataclass(frozen=True, slots=True)
class Sums:
    digest: RecordDigest = field(default_factory=RecordDigest)
    recognition: Recognition = field(default_factory=Recognition)

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.digest + other.digest, self.recognition + other.recognition)


Summed: TypeAlias = Callable[[pa.RecordBatch, pa.RecordBatch], Sums]
"""Counts rows, and the records that they were made from, row by row."""


def summed_by(recognizer: Recognizer) -> Summed:
    def summed(rows: pa.RecordBatch, records: pa.RecordBatch) -> Sums:
        return Sums(RecordDigest.of_seen(records), recognizer.count(rows, records))

    return summed
