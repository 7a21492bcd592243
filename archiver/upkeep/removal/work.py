"""The search and rewrite of files for a topic's removals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from archiver.archive.table_files import TableFile
from archiver.config import Config
from archiver.engine.runner import Engine, TaskOutcome
from archiver.rewrite.table_work import TableWork
from archiver.rewrite.target import RewriteTarget
from archiver.rewrite.upload_claims import UploadClaims
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.upkeep.archived_topic import ArchivedTopic
from archiver.upkeep.removal.components import Component
from archiver.upkeep.removal.places import places_of
from archiver.upkeep.removal.rewriting import Removal, RemovalResult, RemovalTask, remove_rows
from archiver.upkeep.removal.row_bounds import BoundsOfRows, lacks_bounds
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import TopicRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalWork(TableWork):
    """`engine` returns the engine for this many bytes."""

    config: Config
    archived: ArchivedTopic
    engine: Callable[[int], Engine]
    formats: SegmentFormats = FORMATS
    row_bounds: BoundsOfRows = field(default_factory=BoundsOfRows)

    @property
    def topic(self) -> TopicRow:
        return self.archived.topic

    @property
    def table(self) -> ArchiveTable:
        return self.archived.table

    def target(self, table: ArchiveTable) -> RewriteTarget:
        return RewriteTarget.of(table, self.registry.ledger.load(table.topic).versions, self.config, self.formats)

    def files(self, table: ArchiveTable) -> tuple[TableFile, ...]:
        """Bounds are from manifests or rows, unless a file can't be read."""
        files = tuple(self.manifests.files(table.iceberg))
        if not any(map(lacks_bounds, files)):
            return files
        bounded = self.row_bounds.of(files, self.target(table))
        return tuple(bounded.get(file.path, file) for file in files)

    def remove(
        self,
        components: Sequence[Component],
        removal: Removal,
        table: ArchiveTable,
        claims: UploadClaims,
        *,
        dry_run: bool = False,
    ) -> Iterator[tuple[Component, TaskOutcome[RemovalResult]]]:
        """Search, and rewrite components with matching rows unless `dry_run`. Commits nothing."""
        if not components:
            return
        places = {} if dry_run else places_of(table, [file for component in components for file in component.files])
        target = self.target(table)
        first_offsets = self.registry.retention.proven_first_offsets(table.topic, table.first_offsets)
        tasks = [
            RemovalTask(
                target=target,
                component=component,
                removal=removal,
                first_offsets=first_offsets,
                places={file.path: places[file.path] for file in component.files if file.path in places},
                dry_run=dry_run,
            )
            for component in components
        ]
        engine = self.engine(sum(component.size_bytes for component in components))
        for outcome in engine.run_tasks(tasks, remove_rows):
            if outcome.result is not None and outcome.result.group is not None:
                claims.keep(*outcome.result.group.new_paths)
            yield components[outcome.index], outcome
