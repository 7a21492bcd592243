"""The records of a transfer in pieces of limited size."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

from archiver.archive.offset_order import offsets_of
from archiver.codecs import Codec
from archiver.records.matching import SelectedRecords
from archiver.republish.batches import ProducedRecords, split_by_size
from archiver.storage.segment import RowRange


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceLimits:
    most_bytes: int
    most_rows: int
    codec: Codec


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """`records` is None if none was selected. `next_offset` is the source's after them."""

    records: ProducedRecords | None
    next_offset: int

    @property
    def size_bytes(self) -> int:
        return 0 if self.records is None else int(self.records.records.nbytes)


def pieces_of(selected: SelectedRecords, wanted: RowRange, limits: PieceLimits) -> Generator[StreamPiece, None, None]:
    with closing(selected.read(wanted)) as batches:
        for chosen, read_to in batches:
            for part in split_by_size(chosen, most_bytes=limits.most_bytes, most_rows=limits.most_rows):
                yield StreamPiece(ProducedRecords(part, limits.codec), int(offsets_of(part)[-1]) + 1)
            yield StreamPiece(None, read_to)
    yield StreamPiece(None, wanted.end_offset)
