"""`archiver refill`: records that a table lost, brought back in one commit; what nobody has is noted if told to.

A table loses records where others set it back or delete them. Nothing that is in the table is touched, and no offset
comes twice: what is added are rows whose offsets no row has. Killed at any moment, it can be run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from archiver.config import Config
from archiver.engine.runner import Engine
from archiver.engine.session import check_spark
from archiver.errors import DataLoss, TopicBusy, UnknownTopic
from archiver.fault_points import FaultPoint, pass_point
from archiver.ingest.plan import furthest
from archiver.ingest.task import MODULES
from archiver.refill.from_kafka import Fetched, FromKafka, LogReader
from archiver.refill.mending import Mender, Mending
from archiver.refill.originals import originals
from archiver.refill.report import Fate, Mended, RefillReport
from archiver.rows.missing_rows import search
from archiver.rows.table_files import ManifestReader
from archiver.storage.journal import Journal, TableJournal
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentFormat
from archiver.storage.spool import clean_spool
from archiver.upkeep.archived import find_archived
from archiver.upkeep.rewrites import settle_rewrites
from catalog.archive_table import ArchiveTable
from catalog.columns import SchemaChange
from catalog.commit import Unresolved
from catalog.errors import CatalogUnreachable, RolledBack
from catalog.expected import Acceptance, ExpectedRange, Hole
from catalog.lineage import check_lineage, set_back, uncovered
from catalog.model import PartitionOffset, TopicRow, TranslatedRange, new_id
from catalog.refill import PlannedAnew, Refill, Refilled
from catalog.registry import Registry
from catalog.tables import TableCatalog

ROUNDS: Final = 5
"""How often a refill is planned anew where others change the table meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A table with its holes, how far its partitions are archived by all that is known, and whether it was set back."""

    table: ArchiveTable
    holes: tuple[Hole, ...]
    ranges: dict[str, TranslatedRange]
    expected: dict[str, ExpectedRange]
    offsets: dict[int, PartitionOffset]
    is_back: bool
    unknown: tuple[Hole, ...]
    """What the table lost and the registry knows nothing of."""

    def missing(self, holes: Sequence[Hole]) -> list[TranslatedRange]:
        return [self.ranges[each.range_id] for each in holes]


@dataclass(slots=True, kw_only=True)
class _Made:
    """What a round made for its commit."""

    mended: list[Mended] = field(default_factory=list)
    mendings: list[Mending] = field(default_factory=list)
    accepted: list[Acceptance] = field(default_factory=list)
    change: SchemaChange | None = None


class RefillJob:
    """Refills a topic's table. `engine` runs the tasks that read Kafka; by default Spark, started where there are any.

    With `accept_removed` what is missing is noted as erased on purpose, with `accept_lost` what nobody has any more as
    lost.
    """

    def __init__(
        self,
        config: Config,
        topic: str,
        *,
        dry_run: bool = False,
        accept_removed: bool = False,
        accept_lost: bool = False,
        engine: Engine | None = None,
        format_: SegmentFormat | None = None,
    ) -> None:
        self._config = config
        self._name = topic
        self._dry_run = dry_run
        self._accept_removed = accept_removed
        self._accept_lost = accept_lost
        self._engine = engine
        self._format = format_ or ParquetFormat()

    def run(self) -> RefillReport:
        """Find what is missing, and bring it back.

        Raises what keeps it from doing anything; what can't be brought back is in the report.
        """
        if self._engine is None:
            check_spark(self._config.spark)
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            archived = find_archived(self._config, self._name, registry=registry, catalog=catalog)
            if not closing.enter_context(registry.lease(archived.topic)):
                raise TopicBusy("Another archiver is at work on the topic: stop it first", topic=self._name)
            work = _Work(
                topic=archived.topic,
                table=archived.table,
                config=self._config,
                registry=registry,
                catalog=catalog,
                engine_given=self._engine,
                format=self._format,
                closing=closing,
            )
            if not self._dry_run:
                clean_spool(self._config.archive.spool)
                work.settle()
            for _ in range(ROUNDS):
                done = self._round(work)
                if done is not None:
                    return done
        raise CatalogUnreachable(
            "Others change the table faster than it can be refilled; nothing was changed. Run it again when they are"
            " done",
            table=archived.topic.table,
        )

    def _round(self, work: _Work) -> RefillReport | None:
        """Find, fetch and commit; None where others changed the table meanwhile."""
        found = work.look()
        made = self._made(work, found)
        report = RefillReport(
            topic=self._name,
            table=work.topic.table,
            dry_run=self._dry_run,
            was_back=found.is_back,
            mended=tuple(made.mended),
        )
        heals = report.succeeded
        changes = bool(made.mendings or made.accepted) or (found.is_back and heals)
        if self._dry_run or not changes:
            return report
        commit_id = work.commit(found, made, heals=heals)
        if commit_id is None:
            return None
        return RefillReport(
            topic=report.topic,
            table=report.table,
            dry_run=False,
            was_back=report.was_back,
            mended=report.mended,
            commit_id=commit_id,
        )

    def _made(self, work: _Work, found: _Found) -> _Made:
        made = _Made()
        for hole in found.unknown:
            if self._accept_removed or self._accept_lost:
                fate = Fate.ERASED if self._accept_removed else Fate.LOST
                made.mended.append(Mended(hole=hole, fate=fate, rows=hole.rows))
                continue
            reason = (
                "the registry has no range of these offsets: set the table forward again, or run `archiver registry"
                " rebuild` with the journal"
            )
            made.mended.append(Mended(hole=hole, fate=Fate.LEFT, rows=hole.rows, reason=reason))
        if self._accept_removed:
            for hole in found.holes:
                made.mended.append(Mended(hole=hole, fate=Fate.ERASED, rows=hole.rows))
                made.accepted.append(_accepted(found, hole, erased=hole.rows))
            return made
        existing = originals(found.missing(found.holes), work.objects(found), self._format, found.table.properties)
        mender = work.mender(found)
        elsewhere = []
        for hole in found.holes:
            if not found.expected[hole.range_id].is_intact:
                reason = "rows of this range were erased or lost before, and which they were isn't known any more"
                made.mended.append(Mended(hole=hole, fate=Fate.LEFT, rows=hole.rows, reason=reason))
            elif hole.range_id not in existing:
                elsewhere.append(hole)
            elif self._dry_run:
                made.mended.append(Mended(hole=hole, fate=Fate.FROM_FILE, rows=hole.rows))
            else:
                self._take(made, mender.from_file(hole, existing[hole.range_id]), Fate.FROM_FILE, found)
        if elsewhere:
            self._from_kafka(work, found, elsewhere, mender, made)
        return made

    def _from_kafka(self, work: _Work, found: _Found, holes: Sequence[Hole], mender: Mender, made: _Made) -> None:
        if self._dry_run:
            reason = "its file is gone: Kafka is asked for it, if the log still has it"
            made.mended += [Mended(hole=each, fate=Fate.FROM_KAFKA, rows=each.rows, reason=reason) for each in holes]
            return
        log = work.fetch(found.missing(holes))
        made.change = log.change if log else None
        for hole in holes:
            fetched = log.fetched[hole.range_id] if log else Fetched()
            if fetched.error is not None:
                reason = str(fetched.error)
                made.mended.append(Mended(hole=hole, fate=Fate.LEFT, rows=hole.rows, reason=reason))
                continue
            mending = mender.from_log(hole, fetched.ranges, takes_part=self._accept_lost)
            self._take(made, mending, Fate.FROM_KAFKA, found)

    def _take(self, made: _Made, mending: Mending, fate: Fate, found: _Found) -> None:
        """Note what a hole is mended with, and what of it is not."""
        if mending.rows:
            made.mendings.append(mending)
            made.mended.append(Mended(hole=mending.hole, fate=fate, rows=mending.rows))
        left = mending.hole.rows - mending.rows
        if not left:
            return
        if self._accept_lost:
            made.mended.append(Mended(hole=mending.hole, fate=Fate.LOST, rows=left))
            made.accepted.append(_accepted(found, mending.hole, lost=left))
            return
        reason = mending.reason or "its file is gone, and the log doesn't have these records any more"
        made.mended.append(
            Mended(
                hole=mending.hole,
                fate=Fate.LEFT,
                rows=left,
                reason=f"{reason}; --accept-lost notes as lost what can't be brought back",
            )
        )


@dataclass(kw_only=True)
class _Work:
    """A topic's refill under way: what it is connected to, and its steps."""

    topic: TopicRow
    table: ArchiveTable
    config: Config
    registry: Registry
    catalog: TableCatalog
    engine_given: Engine | None
    format: SegmentFormat
    closing: ExitStack

    @cached_property
    def _engine(self) -> Engine:
        from archiver.engine.spark import SparkEngine

        return self.engine_given or self.closing.enter_context(SparkEngine.start(self.config.spark, preloaded=MODULES))

    def settle(self) -> None:
        """Record the fate of what earlier runs left, as the table was before it was set back."""
        journal = self._journal(self.table)
        settle_rewrites(self.topic, self.registry, self.catalog, ManifestReader(), journal)
        pending = self.registry.pending(self.topic)
        if pending:
            settled = self.catalog.settle(self.catalog.require(self.topic), pending, after_rollback=True)
            journal.keep_settled(settled)
            self.registry.record(self.topic, settled)

    def look(self) -> _Found:
        """What is missing of the table as it is now."""
        registry, topic = self.registry, self.topic
        expected = registry.expected(topic)
        partitions = {*self.table.offsets, *(each.partition for each in expected)}
        ends = registry.committed_ends(topic, partitions)
        table = self.catalog.require(topic)
        offsets = furthest(table.offsets, ends)
        is_back = offsets != table.offsets
        try:
            check_lineage(table)
        except RolledBack:
            is_back = True
        holes = search(table, expected)
        ranges = registry.ranges(topic, [each.range_id for each in holes])
        return _Found(
            table=table,
            holes=holes,
            ranges={one.id: one for one in ranges},
            expected={each.id: each for each in expected},
            offsets=offsets,
            is_back=is_back,
            unknown=self._unknown(table) if is_back else (),
        )

    def _unknown(self, table: ArchiveTable) -> tuple[Hole, ...]:
        """Offsets that a table lost when it was set back, and that the registry has no range of."""
        lost = set_back(table)
        known = self.registry.committed_spans(self.topic, {each: spans[0][0] for each, spans in lost.items()})
        return tuple(
            Hole(range_id="", partition=partition, start_offset=start, end_offset=end, rows=end - start)
            for partition, spans in sorted(lost.items())
            for start, end in uncovered(spans, known[partition])
        )

    def fetch(self, wanted: Sequence[TranslatedRange]) -> FromKafka | None:
        """What Kafka has of the ranges; None where the topic is gone, or another one has its name."""
        reader = LogReader(
            config=self.config,
            topic=self.topic,
            registry=self.registry,
            catalog=self.catalog,
            engine=lambda: self._engine,
            format=self.format,
        )
        try:
            return reader.fetch(wanted)
        except (UnknownTopic, DataLoss):
            return None

    def commit(self, found: _Found, made: _Made, *, heals: bool) -> str | None:
        """Commit and record; the commit's id, None where others changed the table meanwhile."""
        spans = {fate: _spans(made.mended, fate) for fate in Fate}
        refill = Refill(
            commit_id=new_id(),
            parent=found.table.snapshot_id,
            files=tuple(file for each in made.mendings for file in each.files),
            refilled=(*spans[Fate.FROM_FILE], *spans[Fate.FROM_KAFKA]),
            erased=spans[Fate.ERASED],
            lost=spans[Fate.LOST],
            heals=heals,
            offsets=found.offsets,
        )
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
            case Refilled(commit_id=commit_id):
                pass_point(FaultPoint.AFTER_COMMIT)
        replaced = {each.hole.range_id: each.replaced_by for each in made.mendings if each.replaced_by}
        journal = self._journal(found.table)
        if replaced:
            journal.keep_commit(commit_id, [one for ranges in replaced.values() for one in ranges])
        self.registry.record_refill(self.topic, replaced=replaced, accepted=made.accepted, commit_id=commit_id)
        pass_point(FaultPoint.AFTER_CONFIRM)
        return commit_id

    def mender(self, found: _Found) -> Mender:
        """What makes files for the holes of a table."""
        return Mender.of(
            found.table,
            found.expected,
            registry=self.registry,
            spool=self.config.archive.spool,
            format_=self.format,
        )

    @staticmethod
    def objects(found: _Found) -> ObjectStore:
        """The table's object store."""
        return ObjectStore.of_table(found.table.iceberg)

    def _journal(self, table: ArchiveTable) -> TableJournal:
        return Journal.of(self.config).of_table(table)


def _accepted(found: _Found, hole: Hole, *, erased: int = 0, lost: int = 0) -> Acceptance:
    left = found.expected[hole.range_id].rows - erased - lost
    return Acceptance(range_id=hole.range_id, left=left, erased=erased, lost=lost)


def _spans(mended: Sequence[Mended], fate: Fate) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (each.hole.partition, each.hole.start_offset, each.hole.end_offset) for each in mended if each.fate is fate
    )
