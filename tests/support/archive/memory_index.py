"""A Lake's indexes: a registry of runs in memory, builds and merges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from archiver.archive.topic_archive import RegistrySources, TopicArchive
from archiver.config.index_section import IndexedValue
from archiver.index.builder import BuildReport, IndexBuild
from archiver.index.columns import resolve_columns
from archiver.index.merging import RunMerge
from archiver.index.removal import RunRemoval
from archiver.index.store import RunStore
from archiver.storage.objects import ObjectStore
from catalog.model import TopicRow
from catalog.registry.rewriting_runs import RewritingRun
from catalog.term_runs import IndexState, TermRun
from schema_mapping.columns.ledger import LedgerState
from tests.support.archive.lake import TOPIC, Lake


class MemoryRuns:
    """As `registry.index` and `registry.claims`, for one topic."""

    def __init__(self) -> None:
        self.runs: dict[str, TermRun] = {}
        self.gone: dict[str, str] = {}
        self.files: set[tuple[str, str]] = set()
        self.claimed: list[RewritingRun] = []
        self.noted = set[str]()
        self.time = 1

    @property
    def index(self) -> MemoryRuns:
        return self

    @property
    def claims(self) -> Any:
        class Claims:
            runs = staticmethod(lambda _topic: tuple(self.claimed))

        return Claims()

    def now_ms(self) -> int:
        self.time += 1
        return self.time

    def load(self, _topic: TopicRow, columns: Collection[str] | None = None) -> tuple[TermRun, ...]:
        return tuple(run for _, run in sorted(self.runs.items()) if columns is None or run.column in columns)

    def state(self, topic: TopicRow, mappings: Mapping[str, str], paths: Sequence[str]) -> IndexState:
        runs = [run for run in self.load(topic, mappings) if run.mapping == mappings[run.column]]
        files = defaultdict[tuple[str, str], set[str]](set)
        for run in runs:
            for run_id, path in self.files:
                if run_id == run.id and path in paths:
                    files[run.column, path].add(run_id)
        return IndexState(runs=tuple(runs), files={key: frozenset(ids) for key, ids in files.items()})

    def add(self, _topic: TopicRow, runs: Sequence[TermRun], paths: Collection[str]) -> None:
        self.runs.update({run.id: run for run in runs})
        self.files |= {(run.id, path) for run in runs for path in paths}

    def replace(self, _topic: TopicRow, run: TermRun, merged: Collection[str]) -> bool:
        if not self.runs.keys() >= set(merged):
            return False
        self.files |= {(run.id, path) for run_id, path in self.files if run_id in merged}
        self.files = {(run_id, path) for run_id, path in self.files if run_id not in merged}
        self.gone |= {run_id: self.runs.pop(run_id).path for run_id in merged}
        self.runs[run.id] = run
        return True

    def drop(self, _topic: TopicRow, ids: Collection[str]) -> None:
        columns = {self.runs[run_id].column for run_id in ids}
        paths = {path for run_id, path in self.files if run_id in ids}
        same = {run.id for run in self.runs.values() if run.column in columns}
        self.files = {(run_id, path) for run_id, path in self.files if not (path in paths and run_id in same)}
        self.gone |= {run_id: self.runs.pop(run_id).path for run_id in ids}

    def dropped(self, _topic: TopicRow) -> dict[str, str]:
        return dict(self.gone)

    def forget(self, _topic: TopicRow, run_id: str) -> None:
        del self.gone[run_id]

    def note_folder(self, _topic: TopicRow, folder: str) -> None:
        self.noted.add(folder)

    def folders(self, _topic: TopicRow) -> tuple[str, ...]:
        paths = {*self.gone.values(), *(run.path for run in self.runs.values())}
        return tuple(sorted(self.noted | {path.rsplit("/", 2)[0] for path in paths}))

    def forget_folder(self, _topic: TopicRow, folder: str) -> None:
        self.noted.discard(folder)

    def forget_files(self, _topic: TopicRow, kept: Collection[str]) -> tuple[str, ...]:
        self.files = {(run_id, path) for run_id, path in self.files if path in kept}
        return tuple(sorted(self.runs.keys() - {run_id for run_id, _ in self.files}))


class LakeIndex:
    """`memory` bounds builds and merges."""

    def __init__(self, lake: Lake, folder: Path, *columns: str | IndexedValue, memory: int = 1 << 20) -> None:
        self.lake = lake
        self.registry: Any = MemoryRuns()
        self.settings = [it if isinstance(it, IndexedValue) else IndexedValue(column=it) for it in columns]
        self.store = RunStore(
            objects=ObjectStore(attempts=1), folder=(folder / "index").as_uri(), spool=folder / "spool"
        )
        self.memory = memory
        self.queries = 0

    def archive(
        self, *, registry: Any = None, ledger: Callable[..., LedgerState] | None = None, bounded: Any = None
    ) -> TopicArchive:
        sources = RegistrySources(registry, ledger, self.lake.absent, self._state, self.store.objects)
        return TopicArchive(TOPIC.topic, self.lake, registry=sources, bounded=bounded)

    def _state(self, _cluster_id: str, _uuid: Any, mappings: Mapping[str, str], paths: Sequence[str]) -> IndexState:
        self.queries += 1
        state: IndexState = self.registry.state(TOPIC, mappings, paths)
        return state

    def build(
        self,
        *,
        registry: Any = None,
        ledger: Callable[..., LedgerState] = lambda *_: LedgerState(),
        is_over: Callable[[], bool] = lambda: False,
        most_entries: int | None = None,
    ) -> BuildReport:
        begun_ms = self.registry.now_ms()
        archive = self.archive(registry=registry, ledger=ledger)
        columns = resolve_columns(self.settings, archive.schema, archive.ledger(), TOPIC.topic)
        paths = archive.snapshot.files.columns["path"].to_pylist()
        removal = self.removal()
        failures = removal.drop(self.registry.forget_files(TOPIC, paths))
        build = IndexBuild(
            topic=TOPIC,
            snapshot=archive.snapshot,
            columns=columns,
            registry=self.registry,
            store=self.store,
            memory=self.memory,
            begun_ms=begun_ms,
            is_over=is_over,
            alive=lambda: None,
        )
        report = build.run()
        merge = RunMerge(
            topic=TOPIC,
            registry=self.registry,
            store=self.store,
            memory=self.memory,
            first_offsets=archive.snapshot.first_offsets,
            most_entries=most_entries,
            is_over=is_over,
            alive=lambda: None,
        )
        if merge.run(columns, report):
            build.count_left()
        report.failures += [*failures, *removal.drop(())]
        return report

    def removal(self) -> RunRemoval:
        return RunRemoval(topic=TOPIC, registry=self.registry, store=self.store)

    def objects(self) -> list[Path]:
        return sorted(Path(self.store.folder.removeprefix("file://")).rglob("*.parquet"))
