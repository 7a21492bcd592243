"""The steps of a refill."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from archiver.audit.acts import RefilledAct
from archiver.audit.trail import AuditTrail
from archiver.commit.file_values import keep_values
from archiver.commit.find_holes import search
from archiver.config import Config
from archiver.engine.choice import EngineChoice
from archiver.errors import DataLoss, UnknownTopic
from archiver.fault_points import FaultPoint, pass_point
from archiver.rewrite.settling import settle_rewrites
from archiver.rewrite.table_work import TableWork
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import SegmentFormats
from archiver.storage.journal import Journal, TableJournal
from archiver.storage.objects import ObjectStore
from archiver.topics.filled_state import FLIGHT_CLUSTER
from archiver.topics.seen_partition import furthest
from archiver.upkeep.refill.from_kafka import FromKafka, RangeRefetcher
from archiver.upkeep.refill.mending import Mender, Mending
from archiver.upkeep.refill.report import Fate, MendedHole
from catalog.account.interval import Interval
from catalog.digests import add_digests
from catalog.errors import CatalogUnreachable, RolledBack
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Unresolved
from catalog.iceberg.lineage import check_lineage, set_back
from catalog.iceberg.refill_commit import PlannedAnew, Refill, Refilled
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import DataFileInfo, PartitionOffset, TopicRow, TranslatedRange, new_id
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Acceptance, ExpectedRange, Hole
from catalog.ranges.spans import uncovered
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`is_back` if the table was rolled back. `kept` files have or had records of a range."""

    table: ArchiveTable
    holes: tuple[Hole, ...]
    ranges: dict[str, TranslatedRange]
    expected: dict[str, ExpectedRange]
    kept: Mapping[str, Sequence[DataFileInfo]]
    offsets: dict[int, PartitionOffset]
    is_back: bool
    erased: Mapping[int, Sequence[tuple[int, int]]]
    unknown: tuple[Hole, ...]
    """Offsets that the table lost and the registry has no range of."""
    first_offsets: Mapping[int, int] = field(default_factory=dict)

    def has_erased(self, hole: Hole) -> bool:
        return bool(self.erased_in(hole))

    def erased_in(self, hole: Hole) -> tuple[tuple[int, int], ...]:
        range_ = self.expected[hole.range_id]
        spans = self.erased.get(range_.partition, ())
        return tuple((start, end) for start, end in spans if start < range_.end_offset and range_.start_offset < end)

    def missing(self, holes: Sequence[Hole]) -> list[TranslatedRange]:
        return [self.ranges[hole.range_id] for hole in holes]


@dataclass(slots=True, kw_only=True)
class Made:
    mended: list[MendedHole] = field(default_factory=list)
    mendings: list[Mending] = field(default_factory=list)
    accepted: list[Acceptance] = field(default_factory=list)
    change: SchemaChange | None = None


@dataclass(kw_only=True)
class RefillWork:
    topic: TopicRow
    table: ArchiveTable
    config: Config
    registry: Registry
    catalog: TableCatalog
    engines: EngineChoice
    formats: SegmentFormats

    def settle(self) -> None:
        """Settle what earlier runs left, with the table's state before the rollback."""
        work = TableWork.of(self.config, self.table, self.registry, self.catalog)
        settle_rewrites(work, self.table)
        work.trail(self.topic).begin(table=self.catalog.reload(self.table))

    def look(self) -> Found:
        registry, topic = self.registry, self.topic
        expected = registry.rows.expected_ranges(topic)
        ends = registry.files.committed_ends(topic)
        table = self.catalog.reload(self.table)
        offsets = furthest(table.offsets, ends)
        is_back = offsets != table.offsets
        try:
            check_lineage(table)
        except RolledBack:
            is_back = True
        first_offsets = table.first_offsets  # also if a restored registry doesn't prove them: retired rows stay gone
        holes = search(table, expected, first_offsets, formats=self.formats)
        range_ids = [hole.range_id for hole in holes]
        ranges = {range_.id: range_ for range_ in registry.files.ranges(topic, range_ids)}
        lacking = [range_ for range_ in expected if range_.id in set(range_ids)]
        account = {
            interval.offsets: interval for interval in registry.rows.account(topic, map(OffsetRange.of_range, lacking))
        }
        by_id = {entry.id: entry for entry in expected}
        by_id |= {range_.id: _accounted(range_, account.get(OffsetRange.of_range(range_))) for range_ in lacking}
        return Found(
            table=table,
            holes=holes,
            ranges=ranges,
            expected=by_id,
            kept=registry.rows.kept_files(topic, range_ids),
            offsets=offsets,
            is_back=is_back,
            erased=self._erased(table) if holes or is_back else {},
            unknown=self._unknown(table) if is_back else (),
            first_offsets=first_offsets,
        )

    def _erased(self, table: ArchiveTable) -> dict[int, tuple[tuple[int, int], ...]]:
        """A restored database may lack some: the journal has them."""
        erased: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for partition, spans in self.registry.erasures.offsets(self.topic).items():
            erased[partition] += spans
        for _, (partition, start, end) in self._journal(table).read().erased:
            erased[partition].append((start, end))
        return {partition: tuple(sorted(set(spans))) for partition, spans in erased.items()}

    def _unknown(self, table: ArchiveTable) -> tuple[Hole, ...]:
        lost = set_back(table)
        committed = self.registry.rows.committed_spans(
            self.topic, {number: spans[0][0] for number, spans in lost.items()}
        )
        offsets = [OffsetRange(at, start, end - 1) for at, spans in lost.items() for start, end in spans]
        unsure: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for interval in self.registry.rows.account(self.topic, offsets):
            if interval.is_unknown:
                unsure[interval.offsets.partition].append((interval.offsets.first, interval.offsets.last + 1))
        return tuple(
            Hole(range_id="", partition=partition, start_offset=start, end_offset=end, rows=end - start)
            for partition, spans in sorted(lost.items())
            for start, end in uncovered(spans, uncovered(committed[partition], unsure[partition]))
        )

    def fetch(self, wanted: Sequence[TranslatedRange]) -> FromKafka | None:
        """Return None if the topic is gone, was recreated, or was never in Kafka."""
        if self.topic.cluster_id == FLIGHT_CLUSTER:
            return None
        reader = RangeRefetcher(
            config=self.config,
            topic=self.topic,
            registry=self.registry,
            catalog=self.catalog,
            engine=lambda: self.engines.engine,
            format=self.formats.written,
        )
        try:
            return reader.fetch(wanted)
        except (UnknownTopic, DataLoss):
            return None

    def commit(self, found: Found, made: Made, *, heals: bool) -> str | None:
        """Return None if other engines changed the table."""
        spans = {fate: _spans(made.mended, fate) for fate in Fate}
        refill = Refill(
            commit_id=new_id(),
            parent=found.table.snapshot_id,
            files=tuple(file for mending in made.mendings for file in mending.files),
            refilled=(*spans[Fate.FROM_FILE], *spans[Fate.FROM_KAFKA]),
            erased=spans[Fate.ERASED],
            lost=spans[Fate.LOST],
            heals=heals,
            offsets=found.offsets,
        )
        journal = self._journal(found.table)
        trail, act = AuditTrail(topic=self.topic, journal=journal, registry=self.registry), _act(refill)
        trail.intend(act, parent=refill.parent)
        pass_point(FaultPoint.BEFORE_COMMIT)
        match self.catalog.refill(found.table, refill, change=made.change):
            case PlannedAnew():
                return None
            case Unresolved(reason=reason):
                raise CatalogUnreachable(
                    "The catalog doesn't say what became of the refill: run it again, which finds out",
                    table=self.topic.table,
                    reason=reason,
                )
            case Refilled(commit_id=commit_id, snapshot_id=snapshot_id):
                pass_point(FaultPoint.AFTER_COMMIT)
        replaced = {mending.hole.range_id: mending.replaced_by for mending in made.mendings if mending.replaced_by}
        if replaced:
            journal.keep_commit(commit_id, [range_ for ranges in replaced.values() for range_ in ranges])
        if made.accepted:
            journal.keep_accepted(commit_id, made.accepted)
        trail.record(replace(act, snapshot_id=snapshot_id))
        self.registry.rows.record_refill(
            self.topic,
            replaced=replaced,
            accepted=made.accepted,
            commit_id=commit_id,
            whole=_whole(found, made.mended),
        )
        refilled = [file for ranges in replaced.values() for range_ in ranges for file in range_.files]
        keep_values(self.registry, self.topic, refilled)
        pass_point(FaultPoint.AFTER_CONFIRM)
        return commit_id

    def mender(self, found: Found) -> Mender:
        versions = self.registry.ledger.load(self.topic).versions
        target = RewriteTarget.of(found.table, versions, self.config, self.formats)
        return Mender.of(found.table, found.expected, target, found.first_offsets)

    @staticmethod
    def objects(found: Found) -> ObjectStore:
        return ObjectStore.of_table(found.table.iceberg)

    def _journal(self, table: ArchiveTable) -> TableJournal:
        return Journal.of(self.config).of_table(table)


def _act(refill: Refill) -> RefilledAct:
    return RefilledAct(
        commit_id=refill.commit_id,
        files=len(refill.files),
        rows=sum(file.rows for file in refill.files),
        digest=add_digests(file.digest for file in refill.files),
        refilled=refill.refilled,
        erased=refill.erased,
        lost=refill.lost,
    )


def _whole(found: Found, mended: Sequence[MendedHole]) -> list[OffsetRange]:
    holes = [
        entry.hole
        for entry in mended
        if entry.fate in {Fate.FROM_FILE, Fate.FROM_KAFKA} and not entry.reason and entry.rows == entry.hole.rows
    ]
    ranges = ((hole, found.expected.get(hole.range_id)) for hole in holes)
    return [
        OffsetRange.of_range(range_)
        for hole, range_ in ranges
        if range_ is not None and range_.is_intact and hole.rows == range_.rows
    ]


def _accounted(one: ExpectedRange, interval: Interval | None) -> ExpectedRange:
    """The digest is of the expected rows. Of `gone` records only accepted ones count."""
    if interval is not None and interval.expected == one.rows:
        return replace(one, digest=interval.digest, gone=interval.removed + interval.lost).proven
    return one if one.is_intact else replace(one, digest=None)


def _spans(mended: Sequence[MendedHole], fate: Fate) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange.of_range(hole.hole) for hole in mended if hole.fate is fate)
