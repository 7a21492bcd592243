"""`archiver index`, and the chore that keeps indexes. Safe beside all other jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from archiver.archive import file_columns
from archiver.archive.topic_archive import TopicArchive, open_archive
from archiver.chores.chore import Chore, ChoreOutcome, ChoreTurn
from archiver.config import Config
from archiver.config.index_section import IndexedValue
from archiver.errors import ConfigError
from archiver.index.builder import BuildReport, IndexBuild
from archiver.index.claim import BuildClaim
from archiver.index.columns import IndexedColumn, resolve_columns
from archiver.index.merging import RunMerge
from archiver.index.removal import RunRemoval
from archiver.index.store import RunStore
from archiver.storage.postings import OffsetSpans
from archiver.upkeep.archived_topic import known_topics
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.term_runs import TermRun
from schema_mapping.columns.ledger import LedgerState

CHORE: Final = "indexing"
REST_SECONDS: Final = 60.0
MOST_MERGED: Final = 20_000_000
"""Entries that the chore merges at once. `archiver index build` merges more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnIndex:
    """`files` of `all_files` are covered. `is_stale`: it is built again."""

    name: str
    kind: str
    runs: int = 0
    levels: int = 0
    entries: int = 0
    size_bytes: int = 0
    files: int = 0
    all_files: int = 0
    is_configured: bool = True
    is_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIndexes:
    """`waiting` are dropped runs whose objects couldn't be deleted yet.

    The chore's time wasn't enough for the `too_large` files.
    """

    topic: str
    columns: tuple[ColumnIndex, ...]
    waiting: int = 0
    too_large: int = 0


def indexing(config: Config) -> Chore:
    def run(turn: ChoreTurn) -> ChoreOutcome:
        report = TopicIndex(config, turn.topic, turn.registry).build(turn.is_over, most_merged=MOST_MERGED)
        if not report.left:
            turn.keep(turn.last_commit)
        return ChoreOutcome(is_finished=not turn.is_over(), failures=tuple(report.failures))

    return Chore(
        name=CHORE,
        when="when idle",
        run=run,
        applies_to=lambda topic: bool(config.topic(topic).index),
        rest_seconds=REST_SECONDS,
    )


def indexed_topics(config: Config, topics: Sequence[str], registry: Registry) -> tuple[TopicRow, ...]:
    """Return by default all topics with an index. Raises NotArchived and ConfigError."""
    rows = known_topics(config, topics, registry)
    if topics:
        return rows
    indexed = tuple(row for row in rows if config.topic(row.topic).index)
    if not indexed:
        raise ConfigError('no archived topic has an index: write index = ["key"] into the section of one')
    return indexed


class TopicIndex:
    def __init__(self, config: Config, topic: TopicRow, registry: Registry) -> None:
        self._config = config
        self._topic = topic
        self._registry = registry

    def build(self, is_over: Callable[[], bool] = lambda: False, *, most_merged: int | None = None) -> BuildReport:
        """Index new files, merge full levels, and delete useless runs.

        Levels with more than `most_merged` entries aren't merged. Raises ConfigError for columns that can't be indexed,
        CatalogError and StorageError.
        """
        if not self._config.topic(self._topic.topic).index:
            raise ConfigError('the topic has no index: write index = ["key"] into its section', topic=self._topic.topic)
        begun_ms = self._registry.index.now_ms(self._topic)  # not after its claim: by this an erasure knows of it
        with BuildClaim.noted(self._registry, self._topic) as claim:
            archive = open_archive(self._config, self._topic.topic, coerces=False)
            columns, store = self._columns(archive), claim.writes_to(self._store(archive))
            paths = archive.snapshot.files.columns[file_columns.PATH].to_pylist()
            removal = RunRemoval(topic=self._topic, registry=self._registry, store=store)
            strays = removal.delete_strays()
            empty = self._registry.index.forget_files(self._topic, paths, before_ms=begun_ms)
            failures = removal.drop((*empty, *(run.id for run in self._runs() if _is_stale(run, columns))))
            memory = self._config.index.memory
            first_offsets = self._registry.retention.proven_first_offsets(self._topic, archive.snapshot.first_offsets)
            build = IndexBuild(
                topic=self._topic,
                snapshot=archive.snapshot,
                columns=columns,
                registry=self._registry,
                store=store,
                memory=memory,
                begun_ms=begun_ms,
                first_offsets=first_offsets,
                is_over=is_over,
                alive=claim.renew,
            )
            report = build.run()
            report.failures += [*strays, *failures]
            merge = RunMerge(
                topic=self._topic,
                registry=self._registry,
                store=store,
                memory=memory,
                gone={partition: OffsetSpans.of([(0, first)]) for partition, first in first_offsets.items()},
                most_entries=most_merged,
                is_over=is_over,
                alive=claim.renew,
            )
            has_dropped = merge.run(columns, report)
            if report.merged or has_dropped:
                report.failures += removal.drop(())
            if has_dropped:
                build.count_left()
            return report

    def drop(self, names: Sequence[str] = ()) -> tuple[int, BuildReport]:
        """Delete runs, by default of all columns; return their number and failures. Raises ConfigError."""
        runs = self._runs()
        names_of_runs = {run.name for run in runs} | {setting.column for setting in self._settings}
        for name in names:
            if name not in names_of_runs:
                near = get_close_matches(name, names_of_runs, 3)
                raise ConfigError(
                    "the topic has no such index",
                    topic=self._topic.topic,
                    column=name,
                    **({"similar": near} if near else {}),
                )
        chosen = [run.id for run in runs if not names or run.name in names]
        archive = open_archive(self._config, self._topic.topic, coerces=False)
        store = self._configured_store(archive) or RunStore.for_deletion(self._config)
        removal = RunRemoval(topic=self._topic, registry=self._registry, store=store)
        failures = removal.drop(chosen)
        strays = removal.delete_strays()
        return len(chosen), BuildReport(failures=[*failures, *strays])

    def rebuild(self, names: Sequence[str] = ()) -> BuildReport:
        """Raises as `build` and `drop`."""
        _, dropped = self.drop(names)
        report = self.build()
        return report if report.failures else replace(report, failures=dropped.failures)

    def status(self) -> TopicIndexes:
        archive = open_archive(self._config, self._topic.topic, coerces=False)
        columns = self._columns(archive)
        paths = archive.snapshot.files.columns[file_columns.PATH].to_pylist()
        runs = self._runs()
        covered = self._registry.index.state(self._topic, {it.identity: it.mapping for it in columns}, paths).files
        shown = [
            self._shown(column, [run for run in runs if run.column == column.identity], covered, len(paths))
            for column in columns
        ]
        configured = {column.identity for column in columns}
        for identity in sorted({run.column for run in runs} - configured):
            column_runs = [run for run in runs if run.column == identity]
            shown.append(
                _sum(column_runs[0].name, column_runs[0].kind, column_runs, is_configured=False, all_files=len(paths))
            )
        waiting = len(self._registry.index.dropped(self._topic))
        too_large = len(self._registry.index.cut(self._topic).intersection(paths))
        return TopicIndexes(topic=self._topic.topic, columns=tuple(shown), waiting=waiting, too_large=too_large)

    @property
    def _settings(self) -> tuple[IndexedValue, ...]:
        return self._config.topic(self._topic.topic).index

    def _shown(
        self,
        column: IndexedColumn,
        runs: list[TermRun],
        covered: Mapping[tuple[str, str], frozenset[str]],
        all_files: int,
    ) -> ColumnIndex:
        current = [run for run in runs if run.mapping == column.mapping]
        files = sum(identity == column.identity for identity, _ in covered)
        return _sum(
            column.name, column.kind, current, files=files, all_files=all_files, is_stale=len(current) < len(runs)
        )

    def _runs(self) -> tuple[TermRun, ...]:
        return self._registry.index.load(self._topic)

    def _columns(self, archive: TopicArchive) -> tuple[IndexedColumn, ...]:
        needs_ledger = any(setting.column.startswith(("val.", "key.")) for setting in self._settings)
        ledger = archive.ledger() if needs_ledger else LedgerState()
        return resolve_columns(self._settings, archive.schema, ledger, self._topic.topic)

    def _configured_store(self, archive: TopicArchive) -> RunStore | None:
        return RunStore.of(self._config, self._topic.table, archive.table_uuid, table_location=archive.location)

    def _store(self, archive: TopicArchive) -> RunStore:
        store = self._configured_store(archive)
        if store is None:
            raise ConfigError("an index needs a place outside of all tables: set `location` in [index]")
        return store


def _is_stale(run: TermRun, columns: Sequence[IndexedColumn]) -> bool:
    return any(run.column == column.identity and run.mapping != column.mapping for column in columns)


def _sum(name: str, kind: str, runs: Sequence[TermRun], **more: int | bool) -> ColumnIndex:
    return ColumnIndex(
        name=name,
        kind=kind,
        runs=len(runs),
        levels=len({run.level for run in runs}),
        entries=sum(run.entries for run in runs),
        size_bytes=sum(run.size_bytes for run in runs),
        **more,  # type: ignore[arg-type]
    )
