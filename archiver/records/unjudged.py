"""Count records for which a condition is unknown."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from archiver.archive.offset_order import offsets_of
from archiver.storage.segment import Block


@dataclass(slots=True)
class UnjudgedRecords:
    """Unknown records may match, and are left out."""

    _counts: dict[tuple[str, int, int], tuple[int, int, int]] = field(default_factory=dict)

    def note(self, path: str, block: Block, records: pa.RecordBatch) -> None:
        """A block that is read again is counted once."""
        if not records.num_rows:
            return
        offsets = offsets_of(records)
        partition = int(records.column("partition")[0].as_py())
        key, lowest = (path, block.index, partition), int(offsets.min())
        count, _, first = self._counts.get(key, (0, partition, lowest))
        self._counts[key] = (count + records.num_rows, partition, min(first, lowest))

    def forget(self, path: str, block: Block, partition: int | None = None) -> None:
        """Call before a block, or its rows of one partition, is read again."""
        for key in [key for key in self._counts if key[:2] == (path, block.index) and partition in (None, key[2])]:
            del self._counts[key]

    @property
    def count(self) -> int:
        return sum(count for count, _, _ in self._counts.values())

    def text(self, topic: str) -> str | None:
        if not self._counts:
            return None
        partition, first = min((partition, first) for _, partition, first in self._counts.values())
        noun = "record" if self.count == 1 else "records"
        return (
            f"{self.count:,} {noun} can't be judged by the condition's columns and may match: what they have isn't in"
            f" these columns. They are left out. The first is at partition {partition}, offset {first:,}. Decode them"
            f" (`archiver reprocess {topic} --all`), or select them by their offsets"
        )
