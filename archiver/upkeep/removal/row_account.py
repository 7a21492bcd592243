"""The account of a rewritten component.

Rows of no known range, or of one with missing rows, are never removed. Missing rows below a first offset are retired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.archive.deletes import Mask
from archiver.archive.table_files import TableFile
from archiver.errors import UpkeepError
from archiver.wire.record_digest import RecordDigest
from catalog.ranges.rewrite import RecordSpan
from catalog.registry.removable import RemovableRange

Fate = Literal["erased", "retired"]


class RowAccount:
    def __init__(self, ranges: tuple[RemovableRange, ...], first_offsets: Mapping[int, int] | None = None) -> None:
        self._first_offsets = first_offsets or {}
        self._above: dict[int, list[npt.NDArray[np.int64]]] = defaultdict(list)
        self._ranges = sorted(ranges, key=lambda range_: (range_.partition, range_.start_offset))
        self._places: dict[int, list[int]] = defaultdict(list)
        for number, range_ in enumerate(self._ranges):
            self._places[range_.partition].append(number)
        self._starts = {
            partition: np.array([self._ranges[n].start_offset for n in numbers])
            for partition, numbers in self._places.items()
        }
        self._ends = {
            partition: np.array([self._ranges[n].end_offset for n in numbers])
            for partition, numbers in self._places.items()
        }
        self._files = 0
        self._kept: dict[int, dict[int, tuple[int, RecordDigest]]] = defaultdict(dict)
        self._gone: dict[int, int] = defaultdict(int)
        self._gone_digests: dict[int, RecordDigest] = defaultdict(RecordDigest)

    def next_file(self) -> int:
        self._files += 1
        return self._files - 1

    def count_gone(self, records: pa.RecordBatch, going: Mask, file: TableFile) -> None:
        """All removed rows must be of known ranges."""
        for number, mask in self._by_range(records, file):
            leaving = mask & going
            self._note_above(number, records, leaving)
            if leaving.any():
                self._gone[number] += int(leaving.sum())
                self._gone_digests[number] += RecordDigest.of_seen(records.filter(pa.array(leaving)))

    def count_kept(self, file_number: int, left: pa.RecordBatch, file: TableFile) -> None:
        for number, mask in self._by_range(left, file):
            self._note_above(number, left, mask)
            rows, digest = self._kept[file_number].get(number, (0, RecordDigest()))
            part = left if mask.all() else left.filter(pa.array(mask))
            self._kept[file_number][number] = (rows + part.num_rows, digest + RecordDigest.of_seen(part))

    def spans(self, file_number: int, fate: Fate) -> tuple[RecordSpan, ...]:
        return tuple(
            self._span(number, rows, digest.text, fate, is_first=self._home(number) == file_number)
            for number, (rows, digest) in sorted(self._kept[file_number].items())
        )

    def emptied(self, fate: Fate) -> tuple[RecordSpan, ...]:
        return tuple(
            self._span(number, 0, None, fate, is_first=True)
            for number in range(len(self._ranges))
            if self._home(number) is None
        )

    def _home(self, number: int) -> int | None:
        return min((file_number for file_number, counts in self._kept.items() if number in counts), default=None)

    def _span(self, number: int, rows: int, digest: str | None, fate: Fate, *, is_first: bool) -> RecordSpan:
        range_ = self._ranges[number]
        gone = self._gone[number] if is_first else 0
        kept = sum(counts[number][0] for counts in self._kept.values() if number in counts)
        most = max(range_.rows, range_.expected)  # a refill's copies aren't recorded, but they have expected rows
        missed = most - kept - gone if is_first else 0
        lacking = max(0, missed - (most - range_.expected)) if is_first else 0
        if lacking and not self._is_full_above(number):
            raise UpkeepError(
                "the table lacks rows of this range that it should have, so it isn't known which go: run `archiver"
                " refill TOPIC` first, which brings them back",
                partition=range_.partition,
                offsets=f"[{range_.start_offset}, {range_.end_offset})",
                missing=lacking,
            )
        return RecordSpan(
            partition=range_.partition,
            start_offset=range_.start_offset,
            end_offset=range_.end_offset,
            rows=rows,
            digest=digest,
            removed=missed - lacking,
            erased=gone if fate == "erased" else 0,
            retired=lacking + (gone if fate == "retired" else 0),
            gone_digest=self._gone_digests[number].text if gone and not lacking else None,
        )

    def _note_above(self, number: int, records: pa.RecordBatch, mask: Mask) -> None:
        first, range_ = self._first_offset(number), self._ranges[number]
        if range_.start_offset < first < range_.end_offset:
            offsets = records.column("offset").to_numpy()[mask]
            self._above[number].append(offsets[offsets >= first])

    def _is_full_above(self, number: int) -> bool:
        """Whether each offset from the first offset on had a row: all missing rows lie below."""
        above = self._above.get(number)
        if not above:
            return False
        rows = len(np.unique(np.concatenate(above)))
        return rows == self._ranges[number].end_offset - self._first_offset(number)

    def _first_offset(self, number: int) -> int:
        return self._first_offsets.get(self._ranges[number].partition, 0)

    def _by_range(self, records: pa.RecordBatch, file: TableFile) -> Iterator[tuple[int, Mask]]:
        partitions = records.column("partition").to_numpy()
        offsets = records.column("offset").to_numpy()
        for partition in np.unique(partitions):
            in_partition = partitions == partition
            numbers = self._places.get(int(partition), [])
            if not numbers:
                raise _unknown_rows(file, int(partition), int(offsets[in_partition][0]))
            places = np.searchsorted(self._starts[int(partition)], offsets, side="right") - 1
            inside = in_partition & (places >= 0) & (offsets < self._ends[int(partition)][np.maximum(places, 0)])
            if (in_partition & ~inside).any():
                raise _unknown_rows(file, int(partition), int(offsets[in_partition & ~inside][0]))
            for position in np.unique(places[inside]):
                yield numbers[int(position)], inside & (places == position)


def _unknown_rows(file: TableFile, partition: int, offset: int) -> UpkeepError:
    return UpkeepError(
        "the file has rows that the registry has no range of, so they can't be accounted for; it stays as it is. Run"
        " `archiver registry rebuild`, which adds ranges that journal or footers know. If none does, it isn't known"
        " whose rows these are: compare them with Kafka before you change them (`archiver verify --against-kafka`)",
        file=file.path,
        partition=partition,
        offset=offset,
    )
