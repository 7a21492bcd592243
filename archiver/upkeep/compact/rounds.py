"""Choose, merge and commit a topic's files until nothing is left.

Groups with foreign changes are chosen again; their new files become orphans. Each commit asserts its snapshot.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from archiver.archive.deletes import DeleteFiles
from archiver.archive.table_files import TableFile
from archiver.commit.lacking_ranges import add_lacking_ranges
from archiver.engine.choice import EngineChoice
from archiver.errors import blamed_file
from archiver.rewrite.in_place import put_in_place
from archiver.rewrite.rounds import ROUNDS
from archiver.rewrite.settling import settle_rewrites
from archiver.rewrite.table_work import TableWork
from archiver.rewrite.upload_claims import UploadClaims
from archiver.upkeep.compact.choice import Budget, CompactLimits, FileGroup, SourceFile, SourceRange, choose
from archiver.upkeep.compact.report import (
    CompactObserver,
    GroupFailed,
    GroupMerged,
    GroupsChosen,
    GroupsCommitted,
    Merged,
    TopicCompaction,
)
from archiver.upkeep.compact.target import CompactTarget
from archiver.upkeep.compact.task import CompactTask, GroupResult, compact_group
from catalog.errors import PartitioningChanged, RewriteRefused
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.rewrite_commit import Displaced, Rewritten
from catalog.model import TopicRow, new_id
from catalog.ranges.rewrite import Rewrite
from schema_mapping.errors import ContextError

REASON: Final = "compact"
PATHS_AT_ONCE: Final = 10_000

_Merges: TypeAlias = list[tuple[FileGroup, GroupResult]]
_One = TypeVar("_One")


class CompactRounds:
    def __init__(
        self,
        target: CompactTarget,
        limits: CompactLimits,
        budget: Budget,
        work: TableWork,
        *,
        report: TopicCompaction,
        observer: CompactObserver,
        engines: EngineChoice,
    ) -> None:
        self._target = target
        self._limits = limits
        self._budget = budget
        self._work = work
        self._report = report
        self._observer = observer
        self._engines = engines
        self._bytes = 0
        self._merged: _Merges = []
        self._spared = False

    def plan(self, table: ArchiveTable, *, settles: bool) -> tuple[FileGroup, ...]:
        """Choose groups. Unless it `settles` unrecorded commits, their files count as foreign."""
        topic, work = table.topic, self._work
        self._check_spec(table)
        files = list(work.manifests.files(table.iceberg))
        if not self._report.files:
            self._report.files = len(files)
            self._report.small_files = sum(file.size_bytes < self._limits.small_below for file in files)
            self._report.min_files = self._limits.min_files
        # Only after the table is read: what it has was staged before, or is recorded by settling it.
        if settles:
            settle_rewrites(work, table)
            add_lacking_ranges(table, work.registry, work.journal, self._target.files.formats)
        ranges: dict[str, list[SourceRange]] = defaultdict(list)
        for some_files in _portions(files, PATHS_AT_ONCE):
            for range_ in work.registry.files.held_ranges(topic, [file.path for file in some_files]):
                ranges[range_.path].append(
                    SourceRange(
                        partition=range_.partition,
                        start_offset=range_.start_offset,
                        end_offset=range_.end_offset,
                        is_whole=range_.is_whole,
                    )
                )
        deletes = DeleteFiles(self._target.files.objects, self._target.files.formats)
        sources = [
            SourceFile(
                file=file, ranges=tuple(ranges.get(file.path, ())), has_deletes=self._may_have_deletes(file, deletes)
            )
            for file in files
        ]
        failed = frozenset(path for paths in self._report.failures for path in paths)
        chosen = choose(sources, replace(self._limits, left=failed))
        if not chosen:
            self._report.fewer_merge = bool(choose(sources, replace(self._limits, left=failed, min_files=2)))
        largest = self._budget.largest_group
        return tuple(group for group in chosen if largest is None or group.size_bytes <= largest)

    def _may_have_deletes(self, file: TableFile, deletes: DeleteFiles) -> bool:
        try:
            return bool(file.equality_deletes) or len(deletes.read(file).positions) > 0
        except ContextError as error:
            if error.retryable:
                raise
            partitions = file.partitions
            self._note_failure(
                (file.path,), error, partitions.low if partitions and partitions.low == partitions.high else None
            )
            return True

    def run(self, table: ArchiveTable) -> None:
        with UploadClaims.of_run(self._work.registry, table.topic) as claims:
            table = self._work.catalog.reload(table)  # an erasure waits for runs only that began before it
            for _ in range(ROUNDS):
                groups = self.plan(table, settles=True)
                if not self._report.planned:
                    self._report.planned = groups
                self._observer(GroupsChosen(topic=table.topic.topic, groups=groups))
                if not groups or not self._round(table, groups, claims):
                    return
                table = self._work.catalog.reload(table)

    def _round(self, table: ArchiveTable, groups: Sequence[FileGroup], claims: UploadClaims) -> bool:
        again, self._spared = any(group.is_mixed or group.is_moved for group in groups), False
        committed = time.monotonic()
        for group, result in self._results(table.topic, groups):
            claims.keep(*result.rewritten.new_paths)
            self._merged.append((group, result))
            if time.monotonic() - committed >= self._budget.commit_seconds:
                again |= self._commit(table)
                committed = time.monotonic()
        again |= self._commit(table) or self._spared
        return again and not self._report.stopped

    def _results(self, topic: TopicRow, groups: Sequence[FileGroup]) -> Iterator[tuple[FileGroup, GroupResult]]:
        engine = self._engines.engine
        at_once = self._budget.parallel or engine.slots
        target = self._target.for_tasks(at_once)
        for some in self._affordable(groups, at_once):
            tasks = [CompactTask(target=target, group=group) for group in some]
            for outcome in engine.run_tasks(tasks, compact_group):
                group = some[outcome.index]
                if outcome.result is not None:
                    self._observer(GroupMerged(topic=topic.topic, group=group, result=outcome.result))
                    yield group, outcome.result
                elif outcome.error is not None:
                    self._fail(group, outcome.error)

    def _check_spec(self, table: ArchiveTable) -> None:
        """Raise PartitioningChanged if the spec changed during the run: files would move twice."""
        places = self._target.places
        if places is not None and table.iceberg.metadata.default_spec_id != places.spec_id:
            raise PartitioningChanged(
                "the table's partitioning was changed while its files moved; those that moved so far are in order. Run"
                " it again for the new one",
                table=table.topic.table,
                found=[str(field) for field in table.iceberg.spec().fields],
                expected=places.partitioning.by,
            )

    def _affordable(self, groups: Iterable[FileGroup], at_once: int) -> Iterator[tuple[FileGroup, ...]]:
        for some in _portions(groups, at_once):
            paid = []
            for group in some:
                if self._budget.is_over() or self._is_beyond(group):
                    self._report.stopped = True
                    break
                self._bytes += group.size_bytes
                paid.append(group)
            if paid:
                yield tuple(paid)
            if self._report.stopped:
                return

    def _is_beyond(self, group: FileGroup) -> bool:
        most = self._budget.most_bytes
        return most is not None and self._bytes > 0 and self._bytes + group.size_bytes > most

    def _commit(self, table: ArchiveTable) -> bool:
        merged, self._merged = self._merged, []
        in_vain = False
        while merged:
            try:
                done = self._put(table, merged)
            except RewriteRefused as error:
                if len(merged) == 1:
                    self._fail(merged[0][0], error)
                    return in_vain
                for merge in merged:  # a refused group must not delay the rest
                    self._merged = [merge]
                    in_vain |= self._commit(table)
                return in_vain
            if isinstance(done, Rewritten):
                self._note(table.topic, done, merged)
                return in_vain
            in_vain = True
            left = [(group, merge) for group, merge in merged if not set(group.paths) & set(done.paths)]
            self._report.again += len(merged) - len(left)
            merged = left
        return in_vain

    def _note(self, topic: TopicRow, done: Rewritten, merged: _Merges) -> None:
        total = sum((Merged.of(group, result) for group, result in merged), Merged())
        self._report.done += total
        self._report.commits.append(done.commit_id)
        self._observer(GroupsCommitted(topic=topic.topic, commit_id=done.commit_id, done=total))

    def _put(self, table: ArchiveTable, merged: _Merges) -> Rewritten | Displaced:
        files: dict[str, TableFile] = {file.file.path: file.file for group, _ in merged for file in group.files}
        rewrite = Rewrite(
            commit_id=new_id(),
            reason=REASON,
            schema_version=max(result.schema_version for _, result in merged),
            groups=tuple(result.rewritten for _, result in merged),
        )
        return put_in_place(self._work, table, rewrite, files)

    def _fail(self, group: FileGroup, error: ContextError) -> None:
        path = None if error.retryable else blamed_file(error, group.paths)
        self._spared |= path is not None and len(group.files) > 1
        self._note_failure(group.paths if path is None else (path,), error, group.files[0].partition)

    def _note_failure(self, paths: tuple[str, ...], error: ContextError, partition: int | None) -> None:
        if paths in self._report.failures:
            return
        context = {"topic": self._report.topic} | ({} if partition is None else {"partition": partition})
        self._report.failures[paths] = error.placed(**context)
        self._observer(GroupFailed(topic=self._report.topic, paths=paths, error=error, partition=partition))


def _portions(many: Iterable[_One], at_once: int) -> Iterator[tuple[_One, ...]]:
    left = iter(many)
    while some := tuple(islice(left, at_once)):
        yield some
