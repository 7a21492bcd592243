"""Proofs and gaps, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.upkeep.verify.evidence import ClaimedRange, Evidence, Witness
from archiver.upkeep.verify.file import VerifiedFile
from archiver.upkeep.verify.file_claims import FileClaim
from archiver.upkeep.verify.findings import Fault, FaultKind, GapKind, Proof
from archiver.upkeep.verify.judge import Judge, Judgement
from archiver.upkeep.verify.tally import TallyCut, TallyPiece
from catalog.model import DataFileInfo, TranslatedRange
from catalog.ranges.stored_ranges import StoredRange


def digest(number: int) -> str:
    return f"{number:032x}"


def stored(start: int, end: int, rows: int, number: int, path: str) -> StoredRange:
    info = DataFileInfo(path=path, size_bytes=9, rows=rows, digest=digest(number))
    return StoredRange.of(
        TranslatedRange(
            id=path,
            topic="orders",
            partition=0,
            start_offset=start,
            end_offset=end,
            schema_version=1,
            leader_epoch=0,
            files=(info,) if rows else (),
            created_ms=0,
        )
    )


FIRST = stored(0, 10, 8, 5, "s3://b/first.parquet")
SECOND = stored(10, 20, 10, 7, "s3://b/second.parquet")


def cut(one: StoredRange) -> TallyCut:
    return TallyCut(partition=0, start_offset=one.start_offset, end_offset=one.end_offset)


def piece(one: StoredRange, rows: int, number: int, **more: object) -> TallyPiece:
    at = one.start_offset
    bounds = {"low": at, "high": at + rows - 1} | more
    return TallyPiece(cut=cut(one), rows=rows, digest=digest(number), **bounds)  # type: ignore[arg-type]


def result(path: str, *pieces: TallyPiece, **more: object) -> VerifiedFile:
    rows = sum(part.rows for part in pieces)
    number = sum(int(part.digest, 16) for part in pieces)
    claim = FileClaim(rows=rows, digest=digest(number), schema_version=1)
    verified = VerifiedFile(
        path=path, size_bytes=9, modified_ms=0, rows=rows, pieces=pieces, claim=claim, is_intact=True
    )
    return replace(verified, **more)  # type: ignore[arg-type]


WHOLE = (result(FIRST.paths[0], piece(FIRST, 8, 5)), result(SECOND.paths[0], piece(SECOND, 10, 7)))


def judged(
    results: Sequence[VerifiedFile], ranges: Sequence[StoredRange] = (FIRST, SECOND), *, end: int = 20
) -> Judgement:
    evidence = Evidence(
        ranges=tuple(ClaimedRange(range=range_, witness=Witness.JOURNAL) for range_ in ranges),
        starts={0: 0},
        ends={0: end},
        faults=(),
    )
    files = {
        outcome.path: TableFile(
            path=outcome.path,
            format="parquet",
            rows=outcome.rows,
            size_bytes=9,
            spec_id=0,
            partition_values=(),
            partitions=ValueBounds(0, 0),
            offsets=None,
            latest=None,
        )
        for outcome in results
    }
    places = {index: (cut(entry),) for index, entry in enumerate(ranges)}
    judge = Judge(evidence, files, {outcome.path: outcome for outcome in results}, selected=places.keys())
    return judge.judge(places)


def told(found: Judgement) -> tuple[list[str], dict[str, int]]:
    return [fault.kind for fault in found.faults], {gap.kind: gap.count for gap in found.gaps}


def test_present_records_are_proven_and_gaps_are_named() -> None:
    verdict = judged(WHOLE)
    assert told(verdict) == ([], {GapKind.NO_RECORD: 2})
    assert [(span.start_offset, span.rows, span.proof) for span in verdict.proven] == [
        (0, 8, Proof.DIGEST),
        (10, 10, Proof.DIGEST),
    ]
    assert (verdict.gaps[0].start_offset, verdict.gaps[0].end_offset) == (8, 10)
    assert verdict.whole == verdict.proven


def test_foreign_files_with_equal_records_prove_the_same() -> None:
    both = result("s3://b/foreign.parquet", piece(FIRST, 8, 5), piece(SECOND, 10, 7), claim=None, is_intact=False)
    verdict = judged([both])
    assert (told(verdict)[0], verdict.moved_rows) == ([], 18)


def test_missing_rows_are_deleted_unless_a_file_explains_them() -> None:
    assert told(judged(WHOLE[:1])) == ([FaultKind.DELETED], {GapKind.NO_RECORD: 2, GapKind.DELETED: 10})
    fault = Fault(kind=FaultKind.MISSING_FILE, message="gone", file=SECOND.paths[0])
    missing = result(SECOND.paths[0], is_read=False, faults=(fault,))
    assert told(judged([WHOLE[0], missing]))[0] == [FaultKind.MISSING_FILE]
    broken = replace(missing, faults=(replace(fault, kind=FaultKind.DAMAGED),))
    assert told(judged([WHOLE[0], broken])) == ([FaultKind.DAMAGED], {GapKind.NO_RECORD: 2, GapKind.DAMAGED: 10})


def test_other_digest_blames_file_neighbours_or_journal() -> None:
    own = result(SECOND.paths[0], piece(SECOND, 10, 8), is_intact=False)
    assert FaultKind.DAMAGED in told(judged([WHOLE[0], own]))[0]
    foreign = result("s3://b/foreign.parquet", piece(SECOND, 10, 8), is_intact=False)
    assert told(judged([WHOLE[0], foreign]))[0] == [FaultKind.ALTERED]
    as_written = result(SECOND.paths[0], piece(SECOND, 10, 8))
    assert FaultKind.JOURNAL in told(judged([WHOLE[0], as_written]))[0]
    more = result("s3://b/foreign.parquet", piece(SECOND, 1, 3))
    assert told(judged([*WHOLE, more]))[0] == [FaultKind.ALTERED]


def test_accepted_and_retired_records_are_gaps_and_no_faults() -> None:
    less = SECOND.without(left=7, erased=2, lost=1)
    verdict = judged([WHOLE[0], result(SECOND.paths[0], piece(SECOND, 7, 4))], (FIRST, less))
    kinds, gaps = told(verdict)
    assert (gaps[GapKind.ERASED], gaps[GapKind.LOST]) == (2, 1)
    assert verdict.proven[1].proof is Proof.FILES
    assert kinds == [FaultKind.FOOTER], "the footer was of all ten rows: another one isn't the file's"
    foreign = result("s3://b/foreign.parquet", piece(SECOND, 7, 4), is_intact=False)
    assert judged([WHOLE[0], foreign], (FIRST, less)).proven[1].proof is Proof.COUNT


def test_unknown_offsets_and_unarchived_rows_are_faults() -> None:
    assert told(judged(WHOLE, end=25)) == (
        [FaultKind.UNACCOUNTED],
        {GapKind.NO_RECORD: 2, GapKind.UNACCOUNTED: 5},
    )
    stranger = replace(piece(SECOND, 1, 1), cut=TallyCut(partition=0, start_offset=90, end_offset=91), is_outside=True)
    assert told(judged([*WHOLE, result("s3://b/x.parquet", stranger)]))[0] == [FaultKind.FOREIGN]


def test_swapped_files_are_found_though_all_records_are_there() -> None:
    swapped = (result(FIRST.paths[0], piece(SECOND, 10, 7)), result(SECOND.paths[0], piece(FIRST, 8, 5)))
    assert FaultKind.FOREIGN in told(judged(swapped))[0]


def test_offsets_that_only_a_snapshot_names_are_unaccounted() -> None:
    """Registry and journal were lost, and another engine had deleted the first rows."""
    claimed = (ClaimedRange(range=SECOND, witness=Witness.FOOTERS),)
    evidence = Evidence(ranges=claimed, starts={}, ends={0: 20}, faults=())
    assert evidence.open_spans() == {}
    assert replace(evidence, named={0: 2}).open_spans() == {0: [(2, 10)]}
    assert replace(evidence, named={0: 15}).open_spans() == {}


def judged_cut(one: ClaimedRange, *pieces: tuple[int, int, int]) -> tuple[list[tuple[FaultKind, str]], dict[str, int]]:
    results = [
        result(
            one.range.paths[0],
            *(
                TallyPiece(
                    cut=TallyCut(partition=0, start_offset=start, end_offset=end),
                    rows=rows,
                    digest=digest(1),
                    low=start,
                    high=start + rows - 1,
                )
                for start, end, rows in pieces
            ),
        )
    ]
    evidence = Evidence(ranges=(one,), starts={0: 10}, ends={0: 20}, faults=())
    cuts = tuple(dict.fromkeys(TallyCut(partition=0, start_offset=start, end_offset=end) for start, end, _ in pieces))
    judge = Judge(evidence, {}, {result.path: result for result in results}, selected={0})
    judgement = judge.judge({0: cuts})
    kinds = [(fault.kind, fault.message) for fault in judgement.faults if fault.kind is not FaultKind.FOOTER]
    return kinds, {gap.kind: gap.count for gap in judgement.gaps}


def test_rows_at_accepted_offsets_stand_for_no_other_row() -> None:
    less = SECOND.without(left=8, erased=2, lost=0)
    claimed = ClaimedRange(range=less, witness=Witness.JOURNAL, accepted=((12, 14),))
    ((kind, text),), gaps = judged_cut(claimed, (10, 12, 2), (12, 14, 2), (14, 20, 4))
    assert (kind, gaps[GapKind.DELETED]) == (FaultKind.DELETED, 2)
    assert "2 of 8 records aren't in the table" in text
    assert "accepted as gone, are in it again" in text
    ((kind, text),), gaps = judged_cut(claimed, (10, 12, 2), (12, 14, 2), (14, 20, 6))
    assert (kind, gaps[GapKind.REWRITTEN]) == (FaultKind.ALTERED, 2)
    assert text.endswith("Nothing is missing")
    assert judged_cut(claimed, (10, 12, 2), (14, 20, 6)) == ([], {GapKind.ERASED: 2})


def test_missing_rows_below_the_first_offset_are_retired() -> None:
    less = replace(SECOND, files=(replace(SECOND.files[0], rows=5, expected=8, retired=2),))
    claimed = ClaimedRange(range=less, witness=Witness.JOURNAL, first_offset=15)
    assert judged_cut(claimed, (15, 20, 5)) == ([], {GapKind.RETIRED: 3})
    for pieces in ([(15, 20, 4)], [(10, 15, 1), (15, 20, 4)], [(15, 20, 5), (15, 20, 1)]):
        ((kind, _),), _ = judged_cut(claimed, *pieces)
        assert kind is FaultKind.DELETED
