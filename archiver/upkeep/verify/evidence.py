"""The ranges that the table must have, by journal, registry and footers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final

from archiver.storage.journal_survey import JournalSurvey
from archiver.upkeep.verify.file_claims import FileClaim
from archiver.upkeep.verify.findings import Fault, FaultKind
from archiver.upkeep.verify.first_offsets import proven_first_offsets, unnamed_first_offsets
from archiver.upkeep.verify.late_entry import LateEntry
from archiver.upkeep.verify.sources import VerifySources
from catalog.account.comparison import Difference, compare, differences
from catalog.account.interval import Interval, accepted_rows
from catalog.current_ranges import current_ranges
from catalog.iceberg.lineage import first_archived
from catalog.model import DataFileInfo, PartitionOffset, TranslatedRange, ulid_in
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import AcceptedSpans
from catalog.ranges.spans import Cover, uncovered
from catalog.ranges.stored_ranges import StoredRange

_NO_EPOCH: Final = -1


class Witness(StrEnum):
    JOURNAL = "journal"
    REGISTRY = "registry"
    FOOTERS = "footers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRange:
    """An `is_unknown` range is known by its rows alone.

    Rows at `accepted` spans were accepted as gone. Rows below `first_offset` were retired.
    """

    range: StoredRange
    witness: Witness
    is_unknown: bool = False
    accepted: tuple[tuple[int, int], ...] = ()
    first_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """`ranges` are disjoint and sorted; `starts` are known first offsets, `faults` contradictions.

    `named` are the first offsets that retained snapshots name.
    """

    ranges: tuple[ClaimedRange, ...]
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    faults: tuple[Fault, ...]
    named: Mapping[int, int] = field(default_factory=dict)

    def open_spans(self) -> dict[int, list[tuple[int, int]]]:
        by_partition = {}
        for partition, end in self.ends.items():
            covered = [range_.range.offsets for range_ in self.ranges if range_.range.partition == partition]
            lowest = min((start for start, _ in covered), default=0)
            first = self.starts.get(partition, min(lowest, self.named.get(partition, lowest)))
            if spans := uncovered([(first, end)], covered) if first < end else []:
                by_partition[partition] = spans
        return by_partition

    def with_footers(
        self, claims: Mapping[str, tuple[FileClaim, DataFileInfo]], journal: JournalSurvey | None, *, late: LateEntry
    ) -> Evidence:
        """Add ranges that only footers name.

        These are faults of the `journal`, unless it is younger or lacks the `late` entry.
        """
        spans = self.open_spans()
        added = [
            ClaimedRange(range=range_, witness=Witness.FOOTERS)
            for range_ in _ranges_of(claims)
            if any(start <= range_.start_offset < end for start, end in spans.get(range_.partition, ()))
        ]
        ranges, _ = _disjoint((*self.ranges, *added))
        due = [claimed.range for claimed in added if journal is not None and _is_due(claimed.range, journal)]
        missing = [range_ for range_ in due if not late.has(range_.partition, *range_.offsets)]
        faults = [*self.faults, *map(_unjournaled, missing)]
        return replace(self, ranges=ranges, faults=tuple(faults))


def evidence_of(sources: VerifySources) -> Evidence:
    ends = {partition: reached.next_offset for partition, reached in sources.table.offsets.items()}
    faults = [
        Fault(kind=FaultKind.JOURNAL, message=str(error), file=path)
        for path, error in sorted(sources.journal.unreadable.items())
    ]
    current = current_ranges(sources.journal.commits, sources.journal.accepted)
    journaled = [range_ for range_ in current.ranges if range_.start_offset < ends.get(range_.partition, 0)]
    starts = _starts(sources.journal)
    claims = [ClaimedRange(range=range_, witness=Witness.JOURNAL) for range_ in journaled]
    registered = () if sources.registry is None else sources.registry.ranges
    faults += _beyond(sources.reach, current.ranges, registered)
    faults += unnamed_first_offsets(sources, current.first_offsets, starts)
    in_table = [range_ for range_ in registered if range_.start_offset < ends.get(range_.partition, 0)]
    if sources.has_journal and sources.registry is not None and not sources.registry.is_in_doubt:
        faults += contradictions(journaled, in_table)
    if sources.registry is not None and not sources.registry.is_in_doubt:
        faults += map(_differing, compare(sources.registry.account, registered))
    cover = Cover(map(OffsetRange.of_range, journaled))
    more = [range_ for range_ in in_table if not cover.touches(OffsetRange.of_range(range_))]
    if sources.has_journal:
        faults += [_unjournaled(range_) for range_ in more if _is_due(range_, sources.journal)]
    account = () if sources.registry is None else sources.registry.account
    accounts = {Witness.JOURNAL: current.account, Witness.REGISTRY: account}
    first_offsets = proven_first_offsets(sources, current.first_offsets)
    unnamed = [interval.offsets for interval in account if interval.is_unknown]
    unknown = Cover(unnamed)
    claims += [
        ClaimedRange(range=range_, witness=Witness.REGISTRY, is_unknown=unknown.touches(OffsetRange.of_range(range_)))
        for range_ in more
    ]
    ranges, overlapping = _disjoint(map(partial(_with_acts, sources.accepted, accounts, first_offsets), claims))
    faults += [
        Fault(
            kind=FaultKind.JOURNAL,
            message="two ranges claim the same offsets: an entry of the journal was changed; restore it from a backup",
            partition=range_.partition,
            start_offset=range_.start_offset,
            end_offset=range_.end_offset,
        )
        for range_ in overlapping
    ]
    return Evidence(ranges=ranges, starts=starts, ends=ends, faults=tuple(faults), named=_first_named(sources))


def _with_acts(
    accepted: AcceptedSpans,
    accounts: Mapping[Witness, Sequence[Interval]],
    first_offsets: Mapping[int, int],
    claimed: ClaimedRange,
) -> ClaimedRange:
    range_ = claimed.range
    spans, rows = accepted.inside(range_)
    if spans:
        gone = sum(file.erased + file.lost for file in range_.files)
        most = accepted_rows(accounts[claimed.witness], OffsetRange.of_range(range_))
        spans = spans if rows <= (gone if most is None else min(gone, most)) else ()
    return replace(claimed, accepted=spans, first_offset=first_offsets.get(range_.partition, 0))


def _beyond(
    reach: Mapping[int, PartitionOffset], journaled: Iterable[StoredRange], registered: Iterable[StoredRange]
) -> Iterator[Fault]:
    """Journal or registry may know more than the table: its catalog was rolled back."""
    ends: dict[int, int] = {}
    for range_ in (*journaled, *registered):
        ends[range_.partition] = max(range_.end_offset, ends.get(range_.partition, 0))
    for partition, end in sorted(ends.items()):
        next_offset = reach[partition].next_offset if partition in reach else 0
        if end > next_offset:
            yield Fault(
                kind=FaultKind.HISTORY,
                message="journal or registry know of commits that the table lacks: its catalog was set back, or lost"
                " them. Restore the newest metadata file of the table",
                partition=partition,
                start_offset=next_offset,
                end_offset=end,
            )


def _first_named(sources: VerifySources) -> dict[int, int]:
    retired = sources.table.first_offsets
    first = first_archived(sources.table.iceberg.metadata)
    return {partition: max(start, retired.get(partition, 0)) for partition, start in first.items()}


def _starts(journal: JournalSurvey) -> dict[int, int]:
    """The last start counts: nothing was staged before it was written."""
    starts: dict[int, int] = {}
    for entry in journal.starts:
        for partition, start in entry.starts.items():
            starts[partition] = max(start, starts.get(partition, 0))
    return starts


def _is_due(one: StoredRange, journal: JournalSurvey) -> bool:
    """Whether a journal without this range should have it.

    Not if it is younger, or has the files or the rewrite that left none.
    """
    rewrites = [commit.rewrite for _, commit in journal.commits if commit.rewrite]
    paths = {path for rewrite in rewrites for path in rewrite.new_paths}
    if one.paths and paths.issuperset(one.paths):
        return False
    if not one.paths and {file.commit_id for file in one.files} <= {rewrite.commit_id for rewrite in rewrites}:
        return False
    first = min((range_.id for _, commit in journal.commits for range_ in commit.ranges), default="")
    return one.partition in _starts(journal) or one.id >= first


def _unjournaled(one: StoredRange) -> Fault:
    return Fault(
        kind=FaultKind.JOURNAL,
        message="the journal has no entry for these offsets, which registry or footers know of: it was removed or"
        " changed, or its job was killed and the registry lost. `archiver registry rebuild` writes it from the table's"
        " snapshots if they and the commit's files are still there; else restore it from a backup",
        partition=one.partition,
        start_offset=one.start_offset,
        end_offset=one.end_offset,
    )


def contradictions(journaled: Sequence[StoredRange], registered: Sequence[StoredRange]) -> Iterator[Fault]:
    """Borders may differ: a rebuild takes borders of files that the table was rolled back to."""
    cover = Cover(map(OffsetRange.of_range, journaled))
    different = [
        difference
        for difference in differences(map(Interval.of, journaled), map(Interval.of, registered))
        if cover.touches(difference.offsets)
    ]
    for difference in different:
        yield _contradiction(difference.offsets, difference.text)
    reported = Cover(difference.offsets for difference in different)
    by_offsets = {(range_.partition, *range_.offsets): range_ for range_ in registered}
    for range_ in journaled:
        twin = by_offsets.get((range_.partition, *range_.offsets))
        offsets = OffsetRange.of_range(range_)
        # A rebuild adds the copies of a refill, which the journal doesn't name.
        if twin is None or set(twin.paths) != set(range_.paths) or reported.touches(offsets):
            continue
        said = {"rows": (range_.rows, twin.rows), "digest": (range_.digest, twin.digest)}
        if differing := {name: pair for name, pair in said.items() if pair[0] != pair[1]}:
            yield _contradiction(offsets, "; ".join(f"{name} {a} and {b}" for name, (a, b) in differing.items()))


def _contradiction(offsets: OffsetRange, text: str) -> Fault:
    return Fault(
        kind=FaultKind.REGISTRY,
        message=f"journal and registry differ: {text}. {_ADVICE}",
        partition=offsets.partition,
        start_offset=offsets.first,
        end_offset=offsets.last + 1,
    )


_ADVICE: Final = "one of them was changed; the records decide which is right (see the other findings)"


def _differing(difference: Difference) -> Fault:
    return Fault(
        kind=FaultKind.REGISTRY,
        message=f"the registry's account of offsets and its files differ: {difference.text}. {_ADVICE}",
        partition=difference.offsets.partition,
        start_offset=difference.offsets.first,
        end_offset=difference.offsets.last + 1,
    )


def _disjoint(known: Iterable[ClaimedRange]) -> tuple[tuple[ClaimedRange, ...], list[StoredRange]]:
    kept: list[ClaimedRange] = []
    overlapping: list[StoredRange] = []
    for claimed in sorted(known, key=lambda claimed: (claimed.range.partition, claimed.range.start_offset)):
        before = kept[-1].range if kept else None
        range_ = claimed.range
        if before is not None and before.partition == range_.partition and range_.start_offset < before.end_offset:
            overlapping.append(range_)
        else:
            kept.append(claimed)
    return tuple(kept), overlapping


def _ranges_of(claims: Mapping[str, tuple[FileClaim, DataFileInfo]]) -> list[StoredRange]:
    by_span: dict[tuple[int, int, int], list[DataFileInfo]] = {}
    versions: dict[tuple[int, int, int], int] = {}
    for claim, file in claims.values():
        if claim.partition is not None and claim.start_offset is not None and claim.end_offset is not None:
            span = (claim.partition, claim.start_offset, claim.end_offset)
            by_span.setdefault(span, []).append(file)
            versions[span] = claim.schema_version or 0
    return [
        StoredRange.of(
            TranslatedRange(
                id=next((name for file in files if (name := ulid_in(file.path))), ""),
                topic="",
                partition=partition,
                start_offset=start,
                end_offset=end,
                schema_version=versions[partition, start, end],
                leader_epoch=_NO_EPOCH,
                files=tuple(files),
                created_ms=0,
            )
        )
        for (partition, start, end), files in by_span.items()
    ]
