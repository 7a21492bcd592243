"""Reads a new file back before its commit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archiver.archive.mappings import KnownMappings
from archiver.archive.offset_order import offsets_of
from archiver.archive.open_file import OpenFile
from archiver.archive.topic_files import TopicFiles
from archiver.errors import UpkeepError
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo

Offsets = npt.NDArray[np.int64]
Partitions = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSpan:
    rows: int
    digest: RecordDigest


def read_back(
    files: TopicFiles, file: DataFileInfo, partition: int, spans: Sequence[tuple[int, int]]
) -> tuple[FoundSpan, ...]:
    """Return rows and digests by span (half-open, sorted), with the file's mappings alone.

    Raises UpkeepError unless all rows are in the spans, strictly ordered, with the written digest.
    """
    rows = [0] * len(spans)
    digests = [RecordDigest()] * len(spans)
    borders = np.array(spans, np.int64).reshape(-1, 2)
    last = -1
    form = files.formats.named(file.format, file.path)
    with closing(OpenFile.whole(form, files.objects, file.path, KnownMappings(files.topic))) as opened:
        for _, records in opened.all_records(opened.assembler.field_ids):
            offsets = offsets_of(records)
            _check_order(file, records.column("partition").to_numpy(), offsets, partition, last)
            last = int(offsets[-1])
            lows = np.searchsorted(offsets, borders[:, 0])
            highs = np.searchsorted(offsets, borders[:, 1])
            for index in np.flatnonzero(highs > lows).tolist():
                low, high = int(lows[index]), int(highs[index])
                rows[index] += high - low
                digests[index] += RecordDigest.of_seen(records.slice(low, high - low))
    results = tuple(FoundSpan(rows=count, digest=digest) for count, digest in zip(rows, digests, strict=True))
    total = sum((span.digest for span in results), RecordDigest())
    if sum(rows) != file.rows or total.text != file.digest:
        raise _wrong(file, rows=file.rows, found_rows=sum(rows), digest=file.digest, found=total.text)
    return results


def _check_order(file: DataFileInfo, partitions: Partitions, offsets: Offsets, partition: int, last: int) -> None:
    if (partitions != partition).any() or (np.diff(offsets, prepend=last) <= 0).any():
        raise _wrong(file, partition=partition, at=f"[{offsets[0]}, {offsets[-1]}]")


def _wrong(file: DataFileInfo, **found: object) -> UpkeepError:
    return UpkeepError(
        "the new file would not give back the same records in order; the old files stay. This is a fault of the"
        " archiver or of the store: please report it",
        file=file.path,
        **found,
    )
