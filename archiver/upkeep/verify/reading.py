"""Reads a table's files in tasks of similar size, without files proven by an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from archiver.archive.table_files import TableFile
from archiver.engine.runner import Engine
from archiver.errors import ObjectMissing
from archiver.upkeep.verify.file import FileToRead, VerifiedFile, VerifyTarget, VerifyTask, verify_files
from archiver.upkeep.verify.findings import Fault, FaultKind
from archiver.upkeep.verify.report import FilesVerified, VerifyObserver, VerifyPlanned
from archiver.upkeep.verify.state import VerifyState
from archiver.upkeep.verify.tally import TallyCut
from catalog.model import file_name
from schema_mapping.errors import ContextError

TASK_BYTES: Final = 128 << 20
"""A task reads about this much, or less if slots would be idle otherwise."""
TASK_FILES: Final = 512
_LEAST_BYTES: Final = 32 << 20
_LEAST_FILES: Final = 64
"""What a task reads at least where one slot has all of them: Spark takes 30 ms for a task, and no slot is idle. Where
there are several slots, tasks have fewer bytes, if there are few, but as many files."""
_AGAIN_FILES: Final = 16
"""Of a task that failed with more files, so many are tried again together."""
_TASKS_PER_SLOT: Final = 4
_LOOKS_AT_ONCE: Final = 16


@dataclass(slots=True, kw_only=True)
class FileReading:
    """A file is read once for the same cuts. `engine` gets the number of bytes to read."""

    target: VerifyTarget
    state: VerifyState | None
    engine: Callable[[int], Engine]
    observer: VerifyObserver
    results: dict[str, VerifiedFile] = field(default_factory=dict)
    resumed: int = 0
    _wanted: dict[str, FileToRead] = field(default_factory=dict)

    def read(self, wanted: Sequence[FileToRead]) -> None:
        """Forgets results of other files."""
        paths = {entry.file.path for entry in wanted if self._wanted.get(entry.file.path) == entry}
        self.results = {path: entry for path, entry in self.results.items() if path in paths}
        self._wanted = {entry.file.path: entry for entry in wanted}
        fresh = [entry for entry in wanted if entry.file.path not in self.results]
        due = fresh if self.state is None else self._unproven(fresh, self.state)
        topic = self.target.topic
        size = sum(entry.file.size_bytes for entry in due)
        self.observer(VerifyPlanned(topic=topic, files=len(due), size_bytes=size, resumed=len(fresh) - len(due)))
        if not due:
            return
        engine = self.engine(size)
        again = self._run(engine, _tasks(due, engine.slots))
        # What a dead worker or a busy store kept from being read is tried again, at last each file alone.
        if len(again) > _AGAIN_FILES:
            again = self._run(engine, list(_grouped(again, TASK_BYTES, _AGAIN_FILES)))
        self._run(engine, [(entry,) for entry in again], is_last=True)

    def _unproven(self, wanted: Sequence[FileToRead], state: VerifyState) -> list[FileToRead]:
        asked = [entry for entry in wanted if entry in state]
        with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="look") as pool:
            for entry, result in zip(asked, pool.map(lambda file: self._proven(file, state), asked), strict=True):
                if result is not None:
                    self.results[entry.file.path] = result
                    self.resumed += 1
        return [entry for entry in wanted if entry.file.path not in self.results]

    def _proven(self, wanted: FileToRead, state: VerifyState) -> VerifiedFile | None:
        try:
            seen = self.target.objects.look(wanted.file.path)
        except ContextError:
            return None
        return state.find(wanted, seen.size, seen.modified_ms)

    def _run(
        self, engine: Engine, batches: Sequence[tuple[FileToRead, ...]], *, is_last: bool = False
    ) -> list[FileToRead]:
        again: list[FileToRead] = []
        if not batches:
            return again
        tasks = [VerifyTask(target=self.target, files=batch) for batch in batches]
        for outcome in engine.run_tasks(tasks, verify_files):
            files = batches[outcome.index]
            if outcome.result is None:
                again += files if not is_last else ()
                for entry in files if is_last else ():
                    self.results[entry.file.path] = _unread(entry, outcome.error)
                continue
            read: list[tuple[FileToRead, VerifiedFile]] = []
            for entry, result in zip(files, outcome.result, strict=True):
                if not is_last and any(fault.kind is FaultKind.UNREADABLE for fault in result.faults):
                    again.append(entry)
                    continue
                self.results[entry.file.path] = result
                read.append((entry, result))
            if self.state is not None:
                self.state.keep(read)
            self.observer(
                FilesVerified(
                    topic=self.target.topic,
                    files=len(files),
                    rows=sum(entry.rows for entry in outcome.result),
                    size_bytes=sum(entry.size_bytes for entry in outcome.result),
                )
            )
        return again

    def missing(self) -> list[str]:
        return [
            path
            for path, result in self.results.items()
            if any(fault.kind is FaultKind.MISSING_FILE for fault in result.faults)
        ]


class CutIndex:
    def __init__(self, cuts: Sequence[TallyCut], owners: Mapping[str, Sequence[TallyCut]]) -> None:
        """`owners` are the cuts of ranges that name a file, by file name."""
        self._by_partition: dict[int, list[TallyCut]] = {}
        for cut in sorted(cuts):
            self._by_partition.setdefault(cut.partition, []).append(cut)
        self._starts = {
            partition: np.array([item.start_offset for item in group])
            for partition, group in self._by_partition.items()
        }
        self._ends = {
            partition: np.array([item.end_offset for item in group]) for partition, group in self._by_partition.items()
        }
        self._owners = owners

    def of(self, file: TableFile) -> tuple[TallyCut, ...]:
        """By manifest bounds and by naming range: either may have been tampered with."""
        cuts = set(self._owners.get(file_name(file.path), ()))
        for partition, group in self._by_partition.items():
            if file.partitions is not None and not file.partitions.low <= partition <= file.partitions.high:
                continue
            if file.offsets is None:
                cuts.update(group)
                continue
            first = int(np.searchsorted(self._ends[partition], file.offsets.low, side="right"))
            last = int(np.searchsorted(self._starts[partition], file.offsets.high, side="right"))
            cuts.update(group[first:last])
        return tuple(sorted(cuts))


def _tasks(files: Sequence[FileToRead], slots: int) -> list[tuple[FileToRead, ...]]:
    """Largest first, so that the last tasks are small."""
    share = slots * _TASKS_PER_SLOT
    least = _LEAST_BYTES if slots == 1 else 1
    most_bytes = max(least, min(TASK_BYTES, sum(file.file.size_bytes for file in files) // share))
    most_files = max(_LEAST_FILES, min(TASK_FILES, len(files) // share))
    ordered = sorted(files, key=lambda entry: (-entry.file.size_bytes, entry.file.path))
    return list(_grouped(ordered, most_bytes, most_files))


def _grouped(files: Sequence[FileToRead], most_bytes: int, most_files: int) -> Iterator[tuple[FileToRead, ...]]:
    group: list[FileToRead] = []
    size = 0
    for file in files:
        if group and (size + file.file.size_bytes > most_bytes or len(group) == most_files):
            yield tuple(group)
            group, size = [], 0
        group.append(file)
        size += file.file.size_bytes
    if group:
        yield tuple(group)


def _unread(wanted: FileToRead, error: ContextError | None) -> VerifiedFile:
    kind = FaultKind.MISSING_FILE if isinstance(error, ObjectMissing) else FaultKind.UNREADABLE
    fault = Fault(kind=kind, message=f"its task failed twice: {error}", file=wanted.file.path)
    return VerifiedFile(path=wanted.file.path, size_bytes=0, modified_ms=None, is_read=False, faults=(fault,))
