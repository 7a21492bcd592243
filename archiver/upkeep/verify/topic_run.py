"""The verification of one topic."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Final

import pyarrow.compute as pc

from archiver.archive.file_columns import ROWS
from archiver.archive.manifests import manifests_of
from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader, TableFile, TableFiles
from archiver.archive.topic_archive import open_archive
from archiver.commit.snapshot_effects import done_by_others
from archiver.config import Config
from archiver.engine.runner import Engine
from archiver.errors import SourceError, StorageError
from archiver.storage.formats import SegmentFormats
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from archiver.topics.filled_state import FLIGHT_CLUSTER
from archiver.upkeep.verify import against_kafka as kafka
from archiver.upkeep.verify.choice import MatchingRanges, VerifyChoice
from archiver.upkeep.verify.evidence import ClaimedRange, Evidence, evidence_of
from archiver.upkeep.verify.file import FileToRead, VerifyTarget
from archiver.upkeep.verify.file_claims import FileClaim, Identity
from archiver.upkeep.verify.findings import Fault, FaultKind, Proof
from archiver.upkeep.verify.judge import Judge, Judgement, gone_of
from archiver.upkeep.verify.late_entry import late_entry
from archiver.upkeep.verify.reading import CutIndex, FileReading
from archiver.upkeep.verify.report import FaultFound, KafkaCompared, VerifiedTopic, VerifyObserver, partitions_of
from archiver.upkeep.verify.sources import SourceFinder, VerifySources
from archiver.upkeep.verify.state import VerifyState
from archiver.upkeep.verify.summaries import check_digests, check_summaries
from archiver.upkeep.verify.tally import TallyCut, sum_of
from catalog.errors import RolledBack, TableError
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage
from catalog.model import DataFileInfo, file_name
from schema_mapping.errors import ContextError

_NOT_IN_KAFKA: Final = "nothing was compared with Kafka: the rows come from Flight clients"
ROUNDS: Final = 5
"""How often everything is read again because files were rewritten and removed meanwhile."""


@dataclass(slots=True, kw_only=True)
class TopicVerification:
    """`engine` gets the number of bytes to read."""

    config: Config
    finder: SourceFinder
    choice: VerifyChoice
    engine: Callable[[int], Engine]
    observer: VerifyObserver
    formats: SegmentFormats
    compares: bool
    state_age: float | None

    def run(self) -> VerifiedTopic:
        """Raise CatalogError and StorageError if the topic can't be verified at all."""
        started = time.monotonic()
        sources = self.finder.find()
        log = self._log(sources.table) if self.compares and not _is_filled(sources) else None
        state = self._state(sources.table)
        with closing(state) if state else closing(_Nothing()):
            reading: FileReading | None = None
            for left in reversed(range(ROUNDS)):
                plan = _Plan.of(self, sources, log if isinstance(log, kafka.LogState) else None)
                if reading is None:
                    reading = FileReading(
                        target=_target(sources, self.formats), state=state, engine=self.engine, observer=self.observer
                    )
                reading.read(plan.wanted)
                if not left or not reading.missing() or self.finder.reload().snapshot_id == plan.snapshot_id:
                    break
                sources = self.finder.find()  # files were rewritten and removed while they were read
            assert reading is not None
            judgement = plan.judge(reading)
            faults = [*self._told_of(sources), *plan.faults, *_of_files(reading), *judgement.faults]
            faults += check_digests(sources.table, judgement.whole)
            compared, more, notes = self._compare(log, plan, reading, judgement)
            report = self._report(
                sources, plan, reading, judgement, faults=[*faults, *more], notes=notes, rows=compared
            )
            if state is not None:
                state.finish()
        return _timed(report, time.monotonic() - started)

    def _state(self, table: ArchiveTable) -> VerifyState | None:
        if self.state_age is None:
            return None
        return VerifyState.open(self.config.archive.spool, table.uuid, max_age=self.state_age)

    def _log(self, table: ArchiveTable) -> kafka.LogState | Fault:
        try:
            return kafka.log_state(self.config.kafka, table.topic, sorted(table.offsets))
        except SourceError as error:
            return Fault(kind=FaultKind.KAFKA, message=f"nothing was compared with the brokers: {error}")

    def _told_of(self, sources: VerifySources) -> list[Fault]:
        faults = []
        try:
            check_lineage(sources.table)
        except RolledBack as error:
            faults.append(Fault(kind=FaultKind.HISTORY, message=str(error)))
        except TableError as error:
            faults.append(Fault(kind=FaultKind.HISTORY, message=str(error)))
        if sources.journal.is_empty and sources.registry is not None and sources.registry.journaled:
            faults.append(
                Fault(
                    kind=FaultKind.JOURNAL,
                    message="the journal has nothing of this table, though it was written before: its objects were"
                    " removed. Restore them from a backup; without them nothing can be held against it",
                    file=Journal.of(self.config).of_table(sources.table).folder,
                )
            )
        if sources.has_journal:
            is_in_doubt = sources.registry is not None and sources.registry.is_in_doubt
            faults += check_summaries(sources.table, sources.journal, is_in_doubt=is_in_doubt, late=late_entry(sources))
        return faults

    def _compare(
        self, log: kafka.LogState | Fault | None, plan: _Plan, reading: FileReading, found: Judgement
    ) -> tuple[int | None, list[Fault], list[str]]:
        if log is None:
            return None, [], [_NOT_IN_KAFKA] if self.compares else []
        if isinstance(log, Fault):
            return 0, [log], []
        cuts = plan.proven_cuts(reading, found)
        tasks = list(kafka.tasks_of(cuts, reading.target, self.config.kafka, log))
        rows = compacted = 0
        faults: list[Fault] = []
        is_retired = False
        outcomes = self.engine(sum(file.size_bytes for file in plan.files)).run_tasks(tasks, kafka.compare_cuts)
        for outcome in outcomes if tasks else ():
            task = tasks[outcome.index]
            if outcome.result is None:
                faults.append(kafka.failed(task, outcome.error))
                continue
            rows += outcome.result.rows
            compacted += outcome.result.compacted
            is_retired = is_retired or outcome.result.is_retired
            faults += outcome.result.faults
            self.observer(KafkaCompared(topic=reading.target.topic, rows=outcome.result.rows))
        notes = []
        if compacted:
            notes.append(
                f"{compacted} archived records are compacted in Kafka since: the archive has them, the log not"
            )
        if is_retired:
            notes.append("Kafka's retention removed records while they were compared")
        beyond = sum(span.rows for span in found.proven) - rows
        if beyond > 0:
            notes.append(f"{beyond} proven records weren't compared: the log lost them, or others of their range")
        return rows, faults, notes

    def _report(
        self,
        sources: VerifySources,
        plan: _Plan,
        reading: FileReading,
        found: Judgement,
        *,
        faults: Sequence[Fault],
        notes: Sequence[str],
        rows: int | None,
    ) -> VerifiedTopic:
        table = sources.table
        for fault in faults:
            self.observer(FaultFound(topic=table.topic.topic, fault=fault))
        remarks = [*notes, *filter(None, [plan.doubt])]
        if not self.choice.is_all:
            remarks.append(f"only {len(plan.selected)} of {len(plan.evidence.ranges)} ranges were to be read")
        if reading.resumed:
            remarks.append(
                f"{reading.resumed} files were read by an earlier run that didn't end. They weren't read again, for"
                " their size and time of change are the same (--fresh reads all)"
            )
        if self.config.archive.journal is not None and sources.journal.is_empty:
            remarks.append("the journal is configured and empty: nothing was held against it")
        if found.moved_rows:
            remarks.append(f"{found.moved_rows} proven records are in files that others wrote")
        by_count = sum(span.rows for span in found.proven if span.proof is Proof.COUNT)
        if by_count:
            remarks.append(f"of {by_count} records only their number is proven: no digest of them is known")
        if changes := done_by_others(table.iceberg):
            remarks.append(f"others changed the table: {'; '.join(changes)}")
        if sources.has_journal and (late := late_entry(sources).commit_id) is not None:
            remarks.append(f"the journal has no entry of the newest commit {late} yet: the next run writes it")
        if sources.registry is not None and sources.registry.is_in_doubt:
            remarks.append("a commit is in doubt or not recorded yet: the registry wasn't held against the journal")
        return VerifiedTopic(
            topic=table.topic.topic,
            table=table.topic.table,
            cluster_id=table.topic.cluster_id,
            topic_id=str(table.topic.topic_id or ""),
            table_uuid=str(table.uuid),
            snapshot_id=table.snapshot_id,
            sources=sources.told,
            partitions=partitions_of(plan.evidence.ends, found.proven, found.gaps),
            faults=tuple(faults),
            notes=tuple(remarks),
            files=len(reading.results),
            size_bytes=sum(result.size_bytes for result in reading.results.values()),
            resumed_files=reading.resumed,
            moved_rows=found.moved_rows,
            compared_rows=rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    snapshot_id: int | None
    evidence: Evidence
    files: tuple[TableFile, ...]
    wanted: tuple[FileToRead, ...]
    cuts: Mapping[int, tuple[TallyCut, ...]]
    selected: frozenset[int]
    doubt: str | None
    faults: tuple[Fault, ...]

    @classmethod
    def of(cls, run: TopicVerification, sources: VerifySources, log: kafka.LogState | None) -> _Plan:
        table = sources.table
        broken: dict[str, StorageError] = {}
        reader = ManifestReader(cache=PlanCache.below(run.config.archive.spool))
        listed = reader.files(table.iceberg, unreadable=broken.__setitem__)
        evidence = evidence_of(sources)
        files = (*listed, *(_unlisted(evidence, listed, run.formats) if broken else ()))
        evidence = _with_footers(evidence, files, sources, run.formats)
        selected = run.choice.of(evidence.ranges, table, listed, run.formats)
        matching: MatchingRanges | None = None
        if run.choice.selection.where is not None:
            archive = open_archive(run.config, table.topic.topic)
            matching = MatchingRanges.find(archive, run.choice.selection, evidence.ranges)
            selected &= matching.places
        borders = dict(log.starts) if log is not None else {}
        cuts = {number: _cuts(evidence.ranges[number], borders) for number in sorted(selected)}
        index = _index(evidence.ranges, cuts)
        candidates = tuple(FileToRead(file=file, cuts=index.of(file)) for file in files)
        return cls(
            snapshot_id=table.snapshot_id,
            evidence=evidence,
            files=files,
            wanted=candidates if run.choice.is_all else tuple(entry for entry in candidates if entry.cuts),
            cuts=cuts,
            selected=selected,
            doubt=None if matching is None else matching.doubt,
            faults=(*evidence.faults, *_broken(broken), *(() if broken else _counts(table, listed))),
        )

    def judge(self, reading: FileReading) -> Judgement:
        files = {file.path: file for file in self.files}
        return Judge(self.evidence, files, reading.results, selected=self.selected).judge(self.cuts)

    def proven_cuts(self, reading: FileReading, found: Judgement) -> list[kafka.ProvenCut]:
        whole = {(span.partition, span.start_offset) for span in found.whole}
        pieces = defaultdict(list)
        for path, result in reading.results.items():
            for piece in result.pieces:
                if not piece.is_outside:
                    pieces[piece.cut].append((path, piece))
        files = {file.path: file for file in self.files}
        cuts = []
        for index, group in self.cuts.items():
            range_ = self.evidence.ranges[index].range
            is_empty = not (range_.rows or range_.lost or gone_of(range_))
            if (range_.partition, range_.start_offset) not in whole and not is_empty:
                continue
            for cut in group:
                rows, digest = sum_of(piece for _, piece in pieces[cut])
                ordered = sorted(((piece.low, path) for path, piece in pieces[cut]))
                table_files = tuple(files[path] for _, path in ordered)
                cuts.append(kafka.ProvenCut(cut=cut, rows=rows, digest=digest, files=table_files))
        return cuts


def _with_footers(
    evidence: Evidence, files: Sequence[TableFile], sources: VerifySources, formats: SegmentFormats
) -> Evidence:
    spans = evidence.open_spans()
    objects = ObjectStore.of_table(sources.table.iceberg)
    claims = {}
    for file in files:
        if not any(_touches(file, partition, ranges) for partition, ranges in spans.items()):
            continue
        try:
            with formats.named(file.format, file.path).open(objects, file.path) as reader:
                claim = FileClaim.of(reader.metadata)
        except ContextError:
            continue  # reported when the file is read
        info = DataFileInfo(path=file.path, size_bytes=file.size_bytes, rows=claim.rows, digest=claim.digest)
        claims[file.path] = claim, info
    if not claims:
        return evidence
    journal = sources.journal if sources.has_journal else None
    return evidence.with_footers(claims, journal, late=late_entry(sources))


def _broken(manifests: Mapping[str, StorageError]) -> Iterator[Fault]:
    for path, error in sorted(manifests.items()):
        yield Fault(kind=FaultKind.MANIFEST, message=error.message, file=path)


def _unlisted(evidence: Evidence, listed: TableFiles, formats: SegmentFormats) -> Iterator[TableFile]:
    recorded = {
        stored.file.path: stored.file
        for range_ in evidence.ranges
        for stored in range_.range.files
        if stored.file is not None and stored.file.format == formats.written.name
    }
    present = listed.named(recorded.keys())
    for path, file in sorted(recorded.items()):
        if path not in present:
            yield TableFile(
                path=path,
                format=file.format,
                rows=file.rows,
                size_bytes=file.size_bytes,
                spec_id=0,
                partition_values=(),
                partitions=None,
                offsets=None,
                latest=None,
            )


def _touches(file: TableFile, partition: int, spans: Iterable[tuple[int, int]]) -> bool:
    partitions, at = file.partitions, file.offsets
    if partitions is not None and not partitions.low <= partition <= partitions.high:
        return False
    return at is None or any(at.low < end and start <= at.high for start, end in spans)


def _cuts(claimed: ClaimedRange, borders: Mapping[int, int]) -> tuple[TallyCut, ...]:
    """Cut at the start of the log, at the partition's first offset, and around accepted offsets."""
    range_ = claimed.range
    inner = {borders.get(range_.partition, 0), claimed.first_offset, *chain.from_iterable(claimed.accepted)}
    edges = {
        range_.start_offset,
        range_.end_offset,
        *(edge for edge in inner if range_.start_offset < edge < range_.end_offset),
    }
    pairs = pairwise(sorted(edges))
    return tuple(TallyCut(partition=range_.partition, start_offset=start, end_offset=end) for start, end in pairs)


def _index(ranges: Sequence[ClaimedRange], cuts: Mapping[int, Sequence[TallyCut]]) -> CutIndex:
    owners: dict[str, list[TallyCut]] = defaultdict(list)
    for index, group in cuts.items():
        for path in ranges[index].range.paths:
            owners[file_name(path)] += group
    return CutIndex([piece for cut in cuts.values() for piece in cut], owners)


def _counts(table: ArchiveTable, files: TableFiles) -> list[Fault]:
    snapshot = table.iceberg.current_snapshot()
    if snapshot is None:
        return []
    listed = [manifest for manifest in manifests_of(table.iceberg, snapshot) if manifest.content.value == 0]
    rows = sum((manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0) for manifest in listed)
    count = sum((manifest.added_files_count or 0) + (manifest.existing_files_count or 0) for manifest in listed)
    total = pc.sum(files.columns[ROWS]).as_py() or 0
    if (rows, count) == (total, len(files)):
        return []
    return [
        Fault(
            kind=FaultKind.MANIFEST,
            message=f"the manifest list counts {count} files with {rows} rows, its manifests have {len(files)} with"
            f" {total}: one of them was changed; restore it from a backup",
            file=snapshot.manifest_list,
        )
    ]


def _of_files(reading: FileReading) -> list[Fault]:
    return [fault for _, result in sorted(reading.results.items()) for fault in result.faults]


def _target(sources: VerifySources, formats: SegmentFormats) -> VerifyTarget:
    topic = sources.table.topic
    return VerifyTarget(
        topic=topic.topic,
        identity=Identity(
            cluster_id=topic.cluster_id,
            topic=topic.topic,
            topic_id=str(topic.topic_id or ""),
            table=topic.table,
        ),
        objects=ObjectStore.of_table(sources.table.iceberg),
        formats=formats,
        mappings=sources.mappings,
    )


def _timed(report: VerifiedTopic, seconds: float) -> VerifiedTopic:
    return replace(report, seconds=seconds)


class _Nothing:
    def close(self) -> None: ...


def _is_filled(sources: VerifySources) -> bool:
    return sources.table.topic.cluster_id == FLIGHT_CLUSTER
