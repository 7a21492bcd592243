"""A Lake's indexes: a registry of runs in memory, builds and merges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from archiver.archive.topic_archive import RegistrySources, TopicArchive
from archiver.config.index_section import IndexedValue
from archiver.index.builder import BuildReport, IndexBuild
from archiver.index.claim import CLAIM, BuildClaim
from archiver.index.columns import resolve_columns
from archiver.index.merging import RunMerge
from archiver.index.removal import RunRemoval
from archiver.index.store import RunStore
from archiver.index.trimming import RunTrim
from archiver.storage.objects import ObjectStore
from archiver.storage.postings import OffsetSpans
from catalog.model import TopicRow
from catalog.registry.rewriting_runs import RewritingRun
from catalog.term_runs import GoneOffsets, IndexState, TermRun
from schema_mapping.columns.ledger import LedgerState
from tests.support.archive.lake import TOPIC, Lake

BUILD = f"{CLAIM}own"


class MemoryRuns:
    """As `registry.index` and `registry.claims`, for one topic."""

    def __init__(self) -> None:
        self.runs: dict[str, TermRun] = {}
        self.waiting: dict[str, str] = {}
        self.files: set[tuple[str, str]] = set()
        self.claimed: list[RewritingRun] = []
        self.cut_paths = set[str]()
        self.gone_spans: list[GoneOffsets] = []
        self.noted = set[str]()
        self.time = 1

    @property
    def index(self) -> MemoryRuns:
        return self

    @property
    def claims(self) -> Any:
        class Claims:
            runs = staticmethod(lambda _topic: tuple(self.claimed))
            note_run = staticmethod(lambda _topic, run_id: self.claim(run_id))
            forget_run = staticmethod(self.forget_run)
            renew_run = staticmethod(lambda _topic, run_id: self.is_claimed(run_id))

        return Claims()

    def forget_run(self, _topic: TopicRow, run_id: str) -> None:
        self.claimed = [claim for claim in self.claimed if claim.id != run_id]

    def claim(self, run_id: str, *, silent: float = 0.0) -> None:
        """Note a build that begins now."""
        self.claimed.append(RewritingRun(id=run_id, begun_ms=self.now_ms(), silent_seconds=silent))

    def now_ms(self, _topic: TopicRow = TOPIC) -> int:
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

    def add(self, _topic: TopicRow, runs: Sequence[TermRun], paths: Collection[str], *, build: str) -> bool:
        if not self.is_claimed(build):
            return False
        self.runs.update({run.id: run for run in runs})
        self.files |= {(run.id, path) for run in runs for path in paths}
        self.cut_paths -= set(paths)
        return True

    def is_claimed(self, build: str) -> bool:
        return any(claim.id == build for claim in self.claimed)

    def begin_merge(self, _topic: TopicRow, runs: Sequence[TermRun], *, build: str) -> bool:
        if not self.is_claimed(build) or not self.runs.keys() >= {run.id for run in runs}:
            return False
        oldest = min(run.begun_ms for run in runs)
        self.claimed = [
            replace(claim, begun_ms=min(oldest, claim.begun_ms)) if claim.id == build else claim
            for claim in self.claimed
        ]
        return True

    def inherit(self, old: Sequence[str], new: str) -> None:
        """As a compaction does for its new file."""
        kinds = {(run.column, run.mapping) for run in self.runs.values()}
        for kind in kinds:
            same = {run.id for run in self.runs.values() if (run.column, run.mapping) == kind}
            rows = {(run_id, path) for run_id, path in self.files if run_id in same and path in old}
            if {path for _, path in rows} == set(old):
                self.files |= {(run_id, new) for run_id, _ in rows}

    def gone(self, _topic: TopicRow) -> tuple[int, tuple[GoneOffsets, ...]]:
        return self.now_ms(), tuple(self.gone_spans)

    def erase(self, topic: TopicRow, gone: Sequence[GoneOffsets]) -> tuple[str, ...]:
        at_ms, noted = self.gone(topic)
        tainted = [
            run.id
            for run in self.runs.values()
            if any(spans.may_be_in(run.begun_ms, run.spans) for spans in (*gone, *noted))
        ]
        self.drop(topic, tainted)
        self.runs = {key: replace(run, begun_ms=max(run.begun_ms, at_ms)) for key, run in self.runs.items()}
        return tuple(tainted)

    def cut(self, _topic: TopicRow) -> frozenset[str]:
        return frozenset(self.cut_paths)

    def note_cut(self, _topic: TopicRow, path: str) -> None:
        self.cut_paths.add(path)

    def replace(
        self,
        _topic: TopicRow,
        run: TermRun,
        merged: Collection[str],
        *,
        build: str,
        kept: Collection[str] | None = None,
    ) -> bool:
        if not self.is_claimed(build) or not self.runs.keys() >= set(merged):
            return False
        if kept is not None:
            same = {it.id for it in self.runs.values() if (it.column, it.mapping) == (run.column, run.mapping)}
            going = {path for run_id, path in self.files if run_id in merged} - set(kept)
            self.files = {(run_id, path) for run_id, path in self.files if run_id not in same or path not in going}
        self.files |= {(run.id, path) for run_id, path in self.files if run_id in merged}
        self.files = {(run_id, path) for run_id, path in self.files if run_id not in merged}
        self.waiting |= {run_id: self.runs.pop(run_id).path for run_id in merged}
        self.runs[run.id] = run
        return True

    def drop(self, _topic: TopicRow, ids: Collection[str]) -> None:
        columns = {self.runs[run_id].column for run_id in ids}
        paths = {path for run_id, path in self.files if run_id in ids}
        same = {run.id for run in self.runs.values() if run.column in columns}
        self.files = {(run_id, path) for run_id, path in self.files if not (path in paths and run_id in same)}
        self.waiting |= {run_id: self.runs.pop(run_id).path for run_id in ids}

    def dropped(self, _topic: TopicRow) -> dict[str, str]:
        return dict(self.waiting)

    def forget(self, _topic: TopicRow, run_id: str) -> None:
        del self.waiting[run_id]

    def note_folder(self, _topic: TopicRow, folder: str) -> None:
        self.noted.add(folder)

    def folders(self, _topic: TopicRow) -> tuple[str, ...]:
        paths = {*self.waiting.values(), *(run.path for run in self.runs.values())}
        return tuple(sorted(self.noted | {path.rsplit("/", 2)[0] for path in paths}))

    def forget_folder(self, _topic: TopicRow, folder: str) -> None:
        self.noted.discard(folder)

    def forget_files(self, _topic: TopicRow, kept: Collection[str], *, before_ms: int) -> tuple[str, ...]:
        self.files = {(run_id, path) for run_id, path in self.files if path in kept}
        return tuple(sorted(self.runs.keys() - {run_id for run_id, _ in self.files}))


class LakeIndex:
    """`memory` bounds builds and merges."""

    def __init__(self, lake: Lake, folder: Path, *columns: str | IndexedValue, memory: int = 1 << 20) -> None:
        self.lake = lake
        self.registry: Any = MemoryRuns()
        self.settings = [it if isinstance(it, IndexedValue) else IndexedValue(column=it) for it in columns]
        self.store = RunStore(
            objects=ObjectStore(attempts=1), folder=(folder / "index").as_uri(), spool=folder / "spool", build=BUILD
        )
        self.memory = memory
        self.queries = 0

    def archive(
        self, *, registry: Any = None, ledger: Callable[..., LedgerState] | None = None, bounded: Any = None
    ) -> TopicArchive:
        sources = RegistrySources(
            mappings=registry, ledger=ledger, values=self.lake.absent, index=self._state, runs=self.store.objects
        )
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
        self.registry.claim(BUILD)
        try:
            return self._build(registry, ledger, is_over, most_entries)
        finally:
            self.registry.forget_run(TOPIC, BUILD)

    def _build(
        self,
        registry: Any,
        ledger: Callable[..., LedgerState],
        is_over: Callable[[], bool],
        most_entries: int | None,
    ) -> BuildReport:
        begun_ms = self.registry.now_ms()
        archive = self.archive(registry=registry, ledger=ledger)
        columns = resolve_columns(self.settings, archive.schema, archive.ledger(), TOPIC.topic)
        paths = archive.snapshot.files.columns["path"].to_pylist()
        removal = self.removal()
        failures = removal.drop(self.registry.forget_files(TOPIC, paths, before_ms=begun_ms))
        build = IndexBuild(
            topic=TOPIC,
            snapshot=archive.snapshot,
            columns=columns,
            registry=self.registry,
            store=BuildClaim(self.registry, TOPIC, BUILD).writes_to(self.store),
            memory=self.memory,
            begun_ms=begun_ms,
            first_offsets=archive.snapshot.first_offsets,
            is_over=is_over,
            alive=lambda: None,
        )
        report = build.run()
        merge = self.merge(archive.snapshot.first_offsets, most_entries=most_entries, is_over=is_over)
        if merge.run(columns, report):
            build.count_left()
        report.failures += [*failures, *removal.drop(())]
        return report

    def merge(
        self,
        first_offsets: Mapping[int, int] | None = None,
        *,
        gone: Mapping[int, Sequence[tuple[int, int]]] | None = None,
        most_entries: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> RunMerge:
        """Return the merges of a build."""
        spans = {partition: [(0, first)] for partition, first in (first_offsets or {}).items()} | dict(gone or {})
        return RunMerge(
            topic=TOPIC,
            registry=self.registry,
            store=self.store,
            memory=self.memory,
            gone={partition: OffsetSpans.of(several) for partition, several in spans.items()},
            most_entries=most_entries,
            is_over=is_over,
            alive=lambda: None,
        )

    def removal(self) -> RunRemoval:
        return RunRemoval(topic=TOPIC, registry=self.registry, store=self.store)

    def erase(self, gone: Sequence[tuple[int, int, int]] = ()) -> None:
        """Erase terms, after these offsets (partition, start, end) had left the table."""
        since, archive = self.registry.now_ms(), self.archive()
        self.registry.gone_spans += [GoneOffsets(*span, since) for span in gone]
        retired = [GoneOffsets(it, 0, first, since) for it, first in archive.snapshot.first_offsets.items()]
        trim = RunTrim(topic=TOPIC, registry=self.registry, store=self.store, memory=self.memory)
        failures, builds = self.removal().erase(
            retired, begun_by_ms=since, trim=lambda: trim.run(retired, lambda: list(archive.snapshot.files))
        )
        assert (failures, builds) == ([], ())

    def objects(self) -> list[Path]:
        return sorted(Path(self.store.folder.removeprefix("file://")).rglob("*.parquet"))
