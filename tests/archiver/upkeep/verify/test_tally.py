"""Records are counted by cut."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from archiver.archive.records import RECORDS
from archiver.upkeep.verify.tally import Tally, TallyCut, TallyPiece, sum_of
from archiver.wire.record_digest import RecordDigest


def records(places: Sequence[tuple[int, int]]) -> pa.RecordBatch:
    rows = [
        {
            "partition": partition,
            "offset": offset,
            "timestamp_type": 0,
            "timestamp": offset,
            "key": b"k",
            "value": b"%d" % offset,
            "headers": [],
        }
        for partition, offset in places
    ]
    return pa.RecordBatch.from_pylist(rows, RECORDS)


def cut(partition: int, start: int, end: int) -> TallyCut:
    return TallyCut(partition=partition, start_offset=start, end_offset=end)


CUTS = (cut(0, 0, 10), cut(0, 10, 20), cut(1, 5, 15))


def test_each_cut_has_its_records_and_strangers_are_apart() -> None:
    tally = Tally(CUTS)
    tally.add(records([(0, 0), (0, 3), (0, 4), (0, 12)]))
    tally.add(records([(0, 13), (1, 4), (1, 5), (2, 7)]))
    pieces = {(piece.is_outside, piece.cut): piece for piece in tally.pieces()}
    assert {key: piece.rows for key, piece in pieces.items()} == {
        (False, CUTS[0]): 3,
        (False, CUTS[1]): 2,
        (False, CUTS[2]): 1,
        (True, cut(1, 4, 5)): 1,
        (True, cut(2, 7, 8)): 1,
    }
    first = pieces[False, CUTS[0]]
    assert (first.low, first.high, first.gaps, first.is_sorted) == (0, 4, ((1, 3),), True)
    assert TallyPiece.from_json(first.to_json()) == first


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_and_their_batches_dont_matter(seed: int) -> None:
    dice = random.Random(seed)
    places = [(partition, offset) for partition in (0, 1) for offset in range(400)]
    cuts = [cut(partition, start, start + 7) for partition in (0, 1) for start in range(0, 400, 7)]
    sorted_tally, mixed = Tally(cuts), Tally(cuts)
    sorted_tally.add(records(places))
    dice.shuffle(places)
    whole = RecordDigest()
    for start in range(0, len(places), 300):
        whole += mixed.add(records(places[start : start + 300]))
    in_order, shuffled = (
        {piece.cut: (piece.rows, piece.digest) for piece in tally.pieces()} for tally in (sorted_tally, mixed)
    )
    assert in_order == shuffled
    assert sum_of(mixed.pieces()) == (800, whole.text)


def test_offsets_that_come_twice_arent_sorted() -> None:
    tally = Tally(CUTS)
    tally.add(records([(0, 1), (0, 1)]))
    (piece,) = tally.pieces()
    assert (piece.rows, piece.is_sorted, piece.gaps) == (2, False, ())
