"""The rounds of a reprocessing: rewrite files until one commit replaces them all.

Files that other engines rewrite are read again in the next round.
"""

from __future__ import annotations

from collections.abc import Iterator

from archiver.archive.table_files import TableFile, TableFiles
from archiver.engine.choice import EngineChoice
from archiver.errors import UpkeepError
from archiver.rewrite.in_place import put_in_place
from archiver.rewrite.rounds import in_rounds
from archiver.rewrite.table_work import TableWork
from archiver.rewrite.target import RewriteTarget
from archiver.rewrite.upload_claims import UploadClaims
from archiver.upkeep.reprocess.file import ReprocessedFile, ReprocessTask, reprocess_file
from archiver.upkeep.reprocess.redecode import Decoding
from archiver.upkeep.reprocess.report import FileFailed, FileReprocessed, ReprocessObserver, ReprocessPlanned
from archiver.upkeep.reprocess.row_filter import RowFilter, table_ids
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import can_compute, partitioning_of
from catalog.iceberg.rewrite_commit import Rewritten
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import new_id
from catalog.partitioning import Partitioning
from catalog.ranges.rewrite import Rewrite
from schema_mapping.errors import ContextError

REASON = "reprocess"


class ReprocessRounds:
    def __init__(
        self,
        target: RewriteTarget,
        decoding: Decoding,
        wanted: RowFilter,
        work: TableWork,
        *,
        engines: EngineChoice,
        observer: ReprocessObserver,
        dry_run: bool,
    ) -> None:
        self._target = target
        self._decoding = decoding
        self._wanted = wanted
        self._engines = engines
        self._work = work
        self._observer = observer
        self._dry_run = dry_run
        self._read: dict[str, TableFile] = {}
        self.results: dict[str, ReprocessedFile] = {}
        self.failures: dict[str, ContextError] = {}

    def run(self, table: ArchiveTable, change: SchemaChange) -> str | None:
        """Return the commit id, None if there is nothing to commit."""
        with UploadClaims.of_run(self._work.registry, table.topic) as claims:
            # The table is loaded after that: an erasure waits for runs only that began before it.
            commit_id = in_rounds(
                lambda: self._round(self._work.catalog.reload(table), change, claims),
                table=table.topic.table,
                may_be="they can be reprocessed, so nothing was changed",
            )
            return commit_id or None

    def _round(self, table: ArchiveTable, change: SchemaChange, claims: UploadClaims) -> str | None:
        """Return the commit id, empty if there is nothing to commit, None to repeat."""
        self._read_files(table, claims)
        groups = tuple(result.rewritten for result in self.results.values() if result.rewritten)
        if not groups:
            return ""
        rewrite = Rewrite(
            commit_id=new_id(), reason=REASON, schema_version=self._decoding.row.schema_version, groups=groups
        )
        done = put_in_place(self._work, table, rewrite, self._read, change=change)
        if isinstance(done, Rewritten):
            return done.commit_id
        self.results = {path: reprocessed for path, reprocessed in self.results.items() if path not in done.paths}
        return None

    def _read_files(self, table: ArchiveTable, claims: UploadClaims) -> None:
        files = self._work.manifests.files(table.iceberg)
        present = files.named(self.results.keys() | self.failures.keys())
        self.results = {path: entry for path, entry in self.results.items() if path in present}
        self.failures = {path: entry for path, entry in self.failures.items() if path in present}
        tasks = [
            ReprocessTask(
                target=self._target,
                decoding=self._decoding,
                file=file,
                wanted=self._wanted,
                dry_run=self._dry_run,
                partitioning=partitioning,
            )
            for file, partitioning in self._candidates(table, files)
        ]
        self._observer(ReprocessPlanned(files=len(tasks)))
        if not tasks:
            return
        engine = self._engines.of_bytes(sum(task.file.size_bytes for task in tasks))
        for outcome in engine.run_tasks(tasks, reprocess_file):
            file = tasks[outcome.index].file
            if outcome.result is not None:
                made = outcome.result.rewritten
                claims.keep(*(made.new_paths if made else ()))
                self.results[file.path] = outcome.result
                self._read[file.path] = file
                self._observer(FileReprocessed(result=outcome.result))
            elif outcome.error is not None:
                self._fail(file.path, outcome.error)

    def _candidates(self, table: ArchiveTable, files: TableFiles) -> Iterator[tuple[TableFile, Partitioning | None]]:
        specs = table.iceberg.specs()
        ids = table_ids(table.schema, self._wanted.reach, self._decoding.row)
        for file in self._wanted.candidates(files, ids):
            if file.path in self.results or file.path in self.failures:
                continue
            partitioning = partitioning_of(specs[file.spec_id])
            if partitioning.is_time_alone:
                yield file, None
            elif can_compute(partitioning, table.schema):
                yield file, partitioning
            else:
                self._fail(
                    file.path,
                    UpkeepError(
                        "the file is partitioned by others in a way that isn't known here: rewrite it with an engine "
                        "first",
                        file=file.path,
                        partitioned_by=partitioning.by or "nothing",
                    ),
                )

    def _fail(self, path: str, error: ContextError) -> None:
        self.failures[path] = error
        self._observer(FileFailed(path=path, error=error))
