"""Decides what is proven: compares found and expected content by range. No I/O."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from archiver.archive.table_files import TableFile
from archiver.upkeep.verify.evidence import ClaimedRange, Evidence, Witness
from archiver.upkeep.verify.file import VerifiedFile
from archiver.upkeep.verify.findings import Fault, FaultKind, Gap, GapKind, Proof, Proven
from archiver.upkeep.verify.tally import TallyCut, TallyPiece, sum_of
from catalog.model import file_name
from catalog.ranges.spans import joined, uncovered
from catalog.ranges.stored_ranges import StoredRange

NAMED_FILES = 3
UNKNOWN = (
    "of offsets that the table says were archived, and neither journal, registry nor footers know: they are"
    " unknown, and they stay. `archiver registry rebuild` accounts for them"
)
BEYOND = (
    "with offsets that the table doesn't say were archived: other engines added them, or set its archiver.offsets back."
    " Keep them until it is known which: Kafka may no longer have them"
)


@dataclass(slots=True, kw_only=True)
class Judgement:
    """`whole` are the proven ranges without gone records."""

    proven: list[Proven] = field(default_factory=list)
    whole: list[Proven] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    moved_rows: int = 0
    """How many proven records are in files that others wrote."""


class Judge:
    """Ranges not `selected` become gaps of the kind `NOT_READ`."""

    def __init__(
        self,
        evidence: Evidence,
        files: Mapping[str, TableFile],
        results: Mapping[str, VerifiedFile],
        *,
        selected: Collection[int],
    ) -> None:
        self._evidence = evidence
        self._results = results
        self._selected = selected
        self._pieces: dict[TallyCut, list[tuple[str, TallyPiece]]] = defaultdict(list)
        self._outside: list[tuple[str, TallyPiece]] = []
        for path, result in results.items():
            for piece in result.pieces:
                if piece.is_outside:
                    self._outside.append((path, piece))
                else:
                    self._pieces[piece.cut].append((path, piece))
        self._unread = [(files.get(path), verified) for path, verified in results.items() if not verified.is_read]
        self._owners: dict[str, set[TallyCut]] = defaultdict(set)
        for range_ in evidence.ranges:
            for path in range_.range.paths:
                self._owners[file_name(path)].add(_cut_of(range_.range))
        self._names = {file_name(path) for path in files}

    def judge(self, cuts: Mapping[int, Sequence[TallyCut]]) -> Judgement:
        """`cuts` are by the index of their range."""
        judgement = Judgement()
        for index, claimed in enumerate(self._evidence.ranges):
            range_ = claimed.range
            if index not in self._selected:
                judgement.gaps.append(_gap(GapKind.NOT_READ, range_, range_.expected))
                continue
            pieces = [piece for cut in cuts[index] for piece in self._pieces.get(cut, ())]
            self._judge(claimed, pieces, judgement)
        for partition, spans in self._evidence.open_spans().items():
            for start, end in spans:
                span: dict[str, Any] = {"partition": partition, "start_offset": start, "end_offset": end}
                judgement.gaps.append(Gap(kind=GapKind.UNACCOUNTED, count=end - start, **span))
                judgement.faults.append(
                    Fault(
                        kind=FaultKind.UNACCOUNTED,
                        message="the table says that it has these offsets, and neither journal, registry nor footers"
                        " know what they hold: an entry was removed, or the offsets were changed",
                        **span,
                    )
                )
        judgement.faults += self._beyond()
        judgement.faults += self._misplaced()
        judgement.faults += self._beside()
        judgement.faults += self._ends()
        return judgement

    def _judge(self, claimed: ClaimedRange, pieces: Sequence[tuple[str, TallyPiece]], found: Judgement) -> None:
        range_ = claimed.range
        rows, digest = sum_of(piece for _, piece in pieces)
        if range_.lost and not rows:
            found.gaps.append(_gap(GapKind.LOST, range_, range_.end_offset - range_.start_offset))
            return
        gone = gone_of(range_)
        found.gaps += gone
        back = _rows_back(claimed, [piece for _, piece in pieces])
        retired = _retired_below(claimed, [piece for _, piece in pieces], range_.expected - rows + back)
        if retired:
            gone.append(_gap(GapKind.RETIRED, range_, retired))
            found.gaps.append(gone[-1])
        wrong = None if retired and not back else self._wrong(range_, pieces, rows, digest, back=back)
        if wrong is not None:
            gap, fault = wrong
            found.gaps.append(gap)
            found.faults.append(fault)
            return
        is_compared = range_.digest is not None and range_.rows == range_.expected and not retired
        if is_compared or not range_.rows:
            proof = Proof.DIGEST
        elif pieces and all(self._results[path].is_intact for path, _ in pieces):
            proof = Proof.FILES
        else:
            proof = Proof.COUNT
        proven = Proven(
            partition=range_.partition,
            start_offset=range_.start_offset,
            end_offset=range_.end_offset,
            rows=rows,
            digest=digest,
            proof=proof,
        )
        found.proven.append(proven)
        if not gone and is_compared:
            found.whole.append(proven)
        found.moved_rows += sum(piece.rows for path, piece in pieces if not self._is_own(path, range_))
        if not gone:
            gaps = _without_record(range_, [piece for _, piece in pieces], rows)
            found.gaps += [replace(gap, kind=GapKind.UNACCOUNTED) for gap in gaps] if claimed.is_unknown else gaps
            if claimed.is_unknown and gaps:
                found.faults.append(_without_word(range_, sum(gap.count for gap in gaps)))

    def _wrong(
        self, one: StoredRange, pieces: Sequence[tuple[str, TallyPiece]], rows: int, digest: str, *, back: int
    ) -> tuple[Gap, Fault] | None:
        is_comparable = one.digest is not None and one.rows == one.expected
        if rows == one.expected and not back and (not is_comparable or digest == one.digest or not one.rows):
            return None
        unread = [result for file, result in self._unread if _may_hold(file, result, one)]
        span: dict[str, Any] = {
            "partition": one.partition,
            "start_offset": one.start_offset,
            "end_offset": one.end_offset,
        }
        missing = max(0, one.expected - (rows - back))
        paths = sorted({path for path, _ in pieces})
        foreign = [path for path in paths if not self._is_own(path, one)]
        if unread and rows - back <= one.expected:
            is_missing = all(_is_missing(entry) for entry in unread)
            gap = GapKind.MISSING_FILE if is_missing else GapKind.DAMAGED
            kind = FaultKind.MISSING_FILE if is_missing else FaultKind.DAMAGED
            text = f"{missing} of {one.expected} records aren't proven: {_named([entry.path for entry in unread])}"
        elif rows - back < one.expected:
            absent = [path for path in one.paths if file_name(path) not in self._names]
            gap, kind = GapKind.DELETED, FaultKind.DELETED
            text = f"{missing} of {one.expected} records aren't in the table: others took them out"
            text += f" with the files {_named(absent)}" if absent else ""
            text += f". {back} other records, which were accepted as gone, are in it again" if back else ""
            text += ". `archiver refill` brings them back"
        elif back and rows - back == one.expected:
            gap, kind = GapKind.REWRITTEN, FaultKind.ALTERED
            text = f"{back} records that were accepted as gone are in the table again ({_named(foreign or paths)})."
            text += " Nothing is missing"
        elif rows > one.expected:
            gap, kind = GapKind.REWRITTEN, FaultKind.ALTERED
            text = (
                f"the table has {rows} rows for {one.expected} archived records ({_named(foreign or paths)}). Which of"
            )
            text += " them were archived isn't known here: compare them with Kafka (--against-kafka) or with a backup"
            text += " before you change anything"
        elif foreign:
            gap, kind = GapKind.REWRITTEN, FaultKind.ALTERED
            text = f"others changed records: their digest is {digest}, archived were {one.digest} ({_named(foreign)})"
        elif paths and all(self._results[path].is_intact for path in paths):
            gap, kind = GapKind.DAMAGED, FaultKind.JOURNAL
            text = f"the records have the digest {digest}, as their files' footers say, and journal or registry say"
            text += f" {one.digest}: one of these was changed; restore it from a backup"
        else:
            gap, kind = GapKind.DAMAGED, FaultKind.DAMAGED
            text = f"the records have the digest {digest}, archived were {one.digest}: {_named(paths)} was changed"
            text += " after it was written; restore it from a backup"
        count = missing or back or one.expected
        return Gap(kind=gap, count=count, **span), Fault(kind=kind, message=text, file=None, **span)

    def _is_own(self, path: str, one: StoredRange) -> bool:
        return _cut_of(one) in self._owners.get(file_name(path), ())

    def _beyond(self) -> Iterator[Fault]:
        """Rows below the table's offsets are unknown, never foreign: these were archived."""
        unselected = [
            claimed.range for index, claimed in enumerate(self._evidence.ranges) if index not in self._selected
        ]
        for path, piece in self._outside:
            cut = piece.cut
            if any(_overlaps(range_, cut) for range_ in unselected):
                continue
            if any(
                start < cut.end_offset and cut.start_offset < end
                for start, end in self._evidence.open_spans().get(cut.partition, ())
            ):
                continue  # reported as unaccounted
            is_archived = cut.start_offset < self._evidence.ends.get(cut.partition, 0)
            yield Fault(
                kind=FaultKind.UNACCOUNTED if is_archived else FaultKind.FOREIGN,
                message=f"{piece.rows} rows {UNKNOWN if is_archived else BEYOND}",
                file=path,
                partition=cut.partition,
                start_offset=cut.start_offset,
                end_offset=cut.end_offset,
            )

    def _misplaced(self) -> Iterator[Fault]:
        for path, result in self._results.items():
            owned = self._owners.get(file_name(path))
            if not owned or not result.is_read:
                continue
            inside = [piece for piece in result.pieces if not piece.is_outside]
            strange = [piece for piece in inside if not any(_within(piece.cut, cut) for cut in owned)]
            if strange:
                first = strange[0].cut
                yield Fault(
                    kind=FaultKind.FOREIGN,
                    message=f"the file holds {sum(part.rows for part in strange)} records that belong to other files:"
                    " files were swapped, or the journal's entry was changed; restore it from a backup",
                    file=path,
                    partition=first.partition,
                    start_offset=first.start_offset,
                    end_offset=first.end_offset,
                )

    def _beside(self) -> Iterator[Fault]:
        reported: set[str] = set()
        for claimed in self._evidence.ranges:
            if claimed.witness is Witness.FOOTERS:
                continue
            for stored in claimed.range.files:
                result = None if stored.file is None else self._results.get(stored.file.path)
                if stored.file is None or result is None or not result.is_read or result.path in reported:
                    continue
                reported.add(result.path)
                claim = result.claim
                said: dict[str, tuple[object, object]] = {
                    "rows": (stored.file.rows, result.rows),
                    "bytes": (stored.file.size_bytes or result.size_bytes, result.size_bytes),
                }
                if claim is not None and stored.file.digest is not None:
                    said["digest"] = (stored.file.digest, claim.digest)
                if differing := {name: pair for name, pair in said.items() if pair[0] != pair[1]}:
                    text = "; ".join(
                        f"{name} {stated}, the file {actual}" for name, (stated, actual) in differing.items()
                    )
                    yield Fault(
                        kind=FaultKind.FOOTER if "digest" in differing else FaultKind.JOURNAL,
                        message=f"{claimed.witness} and file differ: {text}. One of them was changed; restore it from a"
                        " backup",
                        file=result.path,
                        partition=claimed.range.partition,
                    )

    def _ends(self) -> Iterator[Fault]:
        for partition in sorted(
            {range_.range.partition for range_ in self._evidence.ranges} - self._evidence.ends.keys()
        ):
            yield Fault(
                kind=FaultKind.HISTORY,
                message="the table's property archiver.offsets lacks the partition: it was changed, or the table was"
                " set back",
                partition=partition,
            )


def _without_word(one: StoredRange, count: int) -> Fault:
    return Fault(
        kind=FaultKind.UNACCOUNTED,
        message=f"the table has no row at {count} of these offsets, and nothing says whether they had records: registry"
        " and journal were lost. A backup of one of them would say it",
        partition=one.partition,
        start_offset=one.start_offset,
        end_offset=one.end_offset,
    )


def _rows_back(claimed: ClaimedRange, pieces: Iterable[TallyPiece]) -> int:
    """Cuts end at the borders of accepted offsets."""
    starts = [start for start, _ in claimed.accepted]
    back = 0
    for piece in pieces:
        index = bisect_right(starts, piece.cut.start_offset) - 1
        if index >= 0 and piece.cut.end_offset <= claimed.accepted[index][1]:
            back += piece.rows
    return back


def _retired_below(claimed: ClaimedRange, pieces: Iterable[TallyPiece], missing: int) -> int:
    """If each offset from the first offset on has one row, all missing rows lie below it."""
    range_, first = claimed.range, claimed.first_offset
    if missing <= 0 or not range_.start_offset < first < range_.end_offset:
        return 0
    spans: list[tuple[int, int]] = []
    for piece in pieces:
        if piece.cut.start_offset >= first:
            covered = uncovered([(piece.low, piece.high + 1)], piece.gaps)
            if not piece.is_sorted or _length(covered) != piece.rows:
                return 0
            spans += covered
    is_full = joined(spans) == [(first, range_.end_offset)] and _length(spans) == range_.end_offset - first
    return missing if is_full else 0


def _length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def gone_of(one: StoredRange) -> list[Gap]:
    counts = {
        GapKind.ERASED: sum(file.erased for file in one.files),
        GapKind.LOST: sum(file.lost for file in one.files),
        GapKind.RETIRED: sum(file.retired for file in one.files),
    }
    return [_gap(kind, one, count) for kind, count in counts.items() if count]


def _without_record(one: StoredRange, pieces: Sequence[TallyPiece], rows: int) -> list[Gap]:
    count = one.end_offset - one.start_offset - rows
    if not count:
        return []
    ordered = sorted(pieces, key=lambda piece: piece.low)
    spans: list[tuple[int, int]] = []
    at = one.start_offset
    for piece in ordered:
        if piece.low < at or not piece.is_sorted:
            break
        spans += [(at, piece.low)] if piece.low > at else []
        spans += piece.gaps
        at = piece.high + 1
    else:
        spans += [(at, one.end_offset)] if at < one.end_offset else []
        if _length(spans) == count:
            return [
                Gap(
                    kind=GapKind.NO_RECORD,
                    partition=one.partition,
                    start_offset=start,
                    end_offset=end,
                    count=end - start,
                )
                for start, end in spans
            ]
    return [_gap(GapKind.NO_RECORD, one, count)]


def _gap(kind: GapKind, one: StoredRange, count: int) -> Gap:
    return Gap(
        kind=kind, partition=one.partition, start_offset=one.start_offset, end_offset=one.end_offset, count=count
    )


def _cut_of(one: StoredRange) -> TallyCut:
    return TallyCut(partition=one.partition, start_offset=one.start_offset, end_offset=one.end_offset)


def _within(cut: TallyCut, whole: TallyCut) -> bool:
    return (
        cut.partition == whole.partition
        and whole.start_offset <= cut.start_offset
        and cut.end_offset <= whole.end_offset
    )


def _overlaps(one: StoredRange, cut: TallyCut) -> bool:
    return one.partition == cut.partition and one.start_offset < cut.end_offset and cut.start_offset < one.end_offset


def _may_hold(file: TableFile | None, result: VerifiedFile, one: StoredRange) -> bool:
    if file_name(result.path) in {file_name(path) for path in one.paths}:
        return True
    if file is None:
        return False
    partitions, offsets = file.partitions, file.offsets
    return (partitions is None or partitions.low <= one.partition <= partitions.high) and (
        offsets is None or (offsets.low < one.end_offset and offsets.high >= one.start_offset)
    )


def _is_missing(result: VerifiedFile) -> bool:
    return any(fault.kind is FaultKind.MISSING_FILE for fault in result.faults)


def _named(paths: Iterable[str]) -> str:
    listed = list(paths)
    text = ", ".join(listed[:NAMED_FILES])
    return text if len(listed) <= NAMED_FILES else f"{text} and {len(listed) - NAMED_FILES} more"
