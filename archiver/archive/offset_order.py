"""Sorts, splits and merges Arrow batches by offset. Batches without overlap pass unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PIECE_BYTES = 8 << 20

SAME_OFFSET: Final = (
    "two rows of the table have the same offset, and a topic has each offset once. `archiver verify` names their files."
    " Which of the rows was archived isn't known here: compare them with Kafka, or with a backup, before you change"
    " anything. Don't set the table back: that takes out what was archived since"
)
OUT_OF_ORDER: Final = (
    "the rows of a file are out of order, though its footer says that they are sorted. No record is lost by that."
    " `archiver verify` names the file: restore it from a backup, and report it if the archiver wrote it so"
)


def offsets_of(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    column: npt.NDArray[np.int64] = batch.column("offset").to_numpy()
    return column


def misplaced(batch: pa.RecordBatch, last: int) -> tuple[str, int] | None:
    """Return the fault at the first misplaced offset after `last`; None if offsets rise."""
    offsets = offsets_of(batch)
    steps = np.diff(offsets, prepend=last)
    if (steps > 0).all():
        return None
    at = int(np.argmax(steps <= 0))
    return OUT_OF_ORDER if steps[at] < 0 else SAME_OFFSET, int(offsets[at])


def sorted_by_offset(batch: pa.RecordBatch) -> pa.RecordBatch:
    offsets = offsets_of(batch)
    if np.all(offsets[:-1] <= offsets[1:]):
        return batch
    return batch.take(pa.array(np.argsort(offsets, kind="stable")))


def split_at_offset(
    batches: Iterable[pa.RecordBatch], frontier: int
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Split at the offset `frontier`. No batch is empty."""
    below: list[pa.RecordBatch] = []
    rest: list[pa.RecordBatch] = []
    for batch in batches:
        cut = int(np.searchsorted(offsets_of(batch), frontier))
        if cut:
            below.append(batch.slice(0, cut))
        if cut < batch.num_rows:
            rest.append(batch.slice(cut))
    return below, rest


def merge_sorted(batches: Iterable[pa.RecordBatch], *, piece_bytes: int = PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """Merge sorted, nonempty batches. Overlapping ones come in pieces of about `piece_bytes`."""
    ordered = sorted(batches, key=lambda batch: int(offsets_of(batch)[0]))
    cluster: list[pa.RecordBatch] = []
    end = -1
    for batch in ordered:
        offsets = offsets_of(batch)
        if cluster and offsets[0] > end:
            yield from _interleaved(cluster, piece_bytes)
            cluster = []
        cluster.append(batch)
        end = max(end, int(offsets[-1]))
    if cluster:
        yield from _interleaved(cluster, piece_bytes)


def _interleaved(batches: Sequence[pa.RecordBatch], piece_bytes: int) -> Iterator[pa.RecordBatch]:
    if len(batches) == 1:
        yield batches[0]
        return
    lengths = [batch.num_rows for batch in batches]
    source = np.repeat(np.arange(len(batches)), lengths)
    order = np.argsort(np.concatenate([offsets_of(batch) for batch in batches]), kind="stable")
    taken = np.zeros(len(batches), np.int64)
    size = sum(batch.nbytes for batch in batches)
    rows = max(1, piece_bytes * len(order) // max(1, size))
    for start in range(0, len(order), rows):
        sources = source[order[start : start + rows]]
        counts = np.bincount(sources, minlength=len(batches))
        parts = [batch.slice(int(taken[i]), int(counts[i])) for i, batch in enumerate(batches) if counts[i]]
        taken += counts
        # `parts` holds the rows of the piece grouped by source: a stable sort by source gives each row's position
        places = np.empty(len(sources), np.int64)
        places[np.argsort(sources, kind="stable")] = np.arange(len(sources))
        yield pa.concat_batches(parts).take(pa.array(places))
