"""The task that runs in a Spark Python worker: it archives one range of a partition to files in the object store.

If an error ends the task early, it still returns the ranges before the error: their files are complete and continue the
partition. Nothing is committed here. Running a task twice does no harm: staging accepts only one of the two results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, closing
from typing import Final

from archiver.ingest.kafka_log.grouping import Grouper
from archiver.files.range_writer import RangeWriter
from archiver.files.upload import Uploader
from archiver.ingest.kafka_log.source import KafkaSource
from archiver.ingest.task.values import TaskMetrics, TaskResult, TopicTarget, TranslateTask
from archiver.kafka.shared_clients import sharing_clients
from archiver.storage.spool import TaskSpool
from archiver.wire.columns import DecodedBatches
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping.errors import ContextError

MODULES: Final = (
    __name__,
    "archiver.kafka.range_reader",
    "archiver.storage.formats",
    "schema_mapping.protobuf.format",
)
"""The modules that a worker needs for a task, for engines that can import them ahead."""


LEAST_SECONDS: Final = 30.0
"""A task may always read for this long, whatever is left of its credentials: it can have them renewed."""
_READING_SHARE: Final = 0.6


def translate_range(task: TranslateTask) -> TaskResult:
    """Fetch, decode and translate the range, write and upload its files; return the uploaded ranges in order."""
    started_ns = time.time_ns()
    with TaskSpool(task.spool) as spool, Uploader(task.target.objects, spool) as uploader:
        writer = RangeWriter(
            task.target,
            spool,
            uploader,
            partition=task.planned.partition,
            start_offset=task.planned.start_offset,
            leader_epoch=task.planned.leader_epoch,
            spool_bytes=task.spool_bytes,
        )
        reader = _Reader(task)
        error = _attempt(lambda: _translate(task, reader, writer))
        ended = _attempt(writer.end)
        writer.abort()
        uploaded = _attempt(uploader.wait)
        ranges = tuple(uploader.uploaded)
    files = [file for done in ranges for file in done.files]
    metrics = TaskMetrics(
        records=sum(file.rows for file in files),
        batches=reader.batches,
        source_bytes=reader.source_bytes,
        files=len(files),
        file_bytes=sum(file.size_bytes for file in files),
        raw_values=sum(file.raw_values for file in files),
        fetch_seconds=reader.seconds,
        translate_seconds=writer.translate_seconds,
        write_seconds=writer.write_seconds,
        upload_seconds=uploader.seconds,
    )
    return TaskResult(
        ranges=ranges,
        metrics=metrics,
        error=error or ended or uploaded,
        started_ns=started_ns,
        finished_ns=time.time_ns(),
        learned=_learned(task.target, writer.schema_ids),
    )


def together(tasks: Sequence[TranslateTask]) -> AbstractContextManager[None]:
    """A context in which tasks that are done one after the other share what is the same for all of them."""
    sources = (task.target.source for task in tasks)
    return sharing_clients((each.options, each.topic) for each in sources if isinstance(each, KafkaSource))


def _learned(
    target: TopicTarget, schema_ids: Mapping[str, AbstractSet[SchemaNumber]]
) -> Mapping[SchemaIdentity, bytes]:
    readers = {"key": target.key_envelope, "value": target.value_envelope}
    learned: dict[SchemaIdentity, bytes] = {}
    for part, reader in readers.items():
        if reader is not None:
            learned |= reader.choice.learned(schema_ids[part])
    return learned


def _attempt(step: Callable[[], None]) -> ContextError | None:
    try:
        step()
    except ContextError as error:
        return error
    return None


def _translate(task: TranslateTask, reader: _Reader, writer: RangeWriter) -> None:
    grouper = Grouper(plan_time_ms=task.plan_time_ms)
    for number, piece in enumerate(reader.pieces()):
        if number == 0:
            writer.begin_at(piece.start_offset)
        writer.note_epochs(piece.epochs)
        for group in grouper.push(piece):
            writer.write(group)
    for group in grouper.finish():
        writer.write(group)
    writer.cover(reader.read_until)
    if reader.error is not None:
        raise reader.error


def _budget(task: TranslateTask) -> float:
    """How many seconds the task may read, so that its storage credentials are still valid for the upload."""
    left = task.target.objects.seconds_left
    if left is None:
        return task.budget_seconds
    return min(task.budget_seconds, max(LEAST_SECONDS, left * _READING_SHARE))


class _Reader:
    """Reads the range piece by piece, until its end, the end of the task's time, or an error.

    The error is kept in `error`: the pieces before it are written first.
    """

    def __init__(self, task: TranslateTask) -> None:
        self._task = task
        self.read_until = task.planned.start_offset
        self.error: ContextError | None = None
        self.batches = 0
        self.source_bytes = 0
        self.seconds = 0.0

    def pieces(self) -> Iterator[DecodedBatches]:
        deadline = time.monotonic() + _budget(self._task)
        with closing(self._task.target.source.batches(self._task.planned)) as source:
            while (piece := self._next(source)) is not None:
                self.read_until = piece.next_offset
                self.batches += len(piece.batches)
                self.source_bytes += int(piece.batches.bytes.sum())
                yield piece
                if time.monotonic() >= deadline:
                    return

    def _next(self, source: Iterator[DecodedBatches]) -> DecodedBatches | None:
        started = time.perf_counter()
        try:
            return next(source, None)
        except ContextError as error:
            self.error = error
            return None
        finally:
            self.seconds += time.perf_counter() - started
