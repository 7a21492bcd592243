"""Archive one range to files, in a Spark worker. Commits nothing; safe to run twice.

Ranges before an error are complete and returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from archiver.files.range_writer import RangeWriter
from archiver.files.upload import Uploader
from archiver.ingest.task.log_source import LogReading
from archiver.ingest.task.values import TaskMetrics, TaskResult, TopicTarget, TranslateTask
from archiver.storage.spool import TaskSpool
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping.errors import ContextError
from schema_mapping.formats import MODULES as VALUE_FORMAT_MODULES

MODULES: Final = (
    __name__,
    "archiver.ingest.kafka_log.source",
    "archiver.kafka.range_reader",
    "archiver.storage.formats",
    *VALUE_FORMAT_MODULES,
)
"""The modules that a worker needs for a task, for engines that can import them ahead."""


LEAST_SECONDS: Final = 30.0
"""A task may always read for this long, whatever is left of its credentials: it can have them renewed."""
_READING_SHARE: Final = 0.6


def translate_range(task: TranslateTask, *, shared: Mapping[type, Any] = MappingProxyType({})) -> TaskResult:
    started_ns, source = time.time_ns(), task.target.source
    with TaskSpool(task.spool) as spool, Uploader(task.target.objects, spool) as uploader:
        reading = source.read(
            task.planned,
            plan_time_ms=task.plan_time_ms,
            budget_seconds=_budget(task),
            shared=shared.get(type(source)),
        )
        writer = RangeWriter(
            task.target, spool, uploader, partition=task.planned.partition, spool_bytes=task.spool_bytes
        )
        error = _attempt(lambda: _translate(reading, writer))
        ended = _attempt(writer.end)
        writer.abort()
        uploaded = _attempt(uploader.wait)
        ranges = tuple(replace(done, leader_epoch=reading.leader_epoch(done.end_offset)) for done in uploader.uploaded)
    files = [file for done in ranges for file in done.files]
    metrics = TaskMetrics(
        records=sum(file.rows for file in files),
        batches=reading.batches,
        source_bytes=reading.source_bytes,
        files=len(files),
        file_bytes=sum(file.size_bytes for file in files),
        raw_values=sum(file.raw_values for file in files),
        fetch_seconds=reading.seconds,
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


@contextmanager
def together(tasks: Sequence[TranslateTask]) -> Iterator[Callable[[TranslateTask], TaskResult]]:
    """For tasks run in sequence, which share clients."""
    sources = [task.target.source for task in tasks]
    with ExitStack() as stack:
        shared = {
            kind: stack.enter_context(kind.sharing(source for source in sources if type(source) is kind))
            for kind in dict.fromkeys(type(source) for source in sources)
        }
        yield partial(translate_range, shared=shared)


def _learned(
    target: TopicTarget, schema_ids: Mapping[str, AbstractSet[SchemaNumber]]
) -> Mapping[SchemaIdentity, bytes]:
    readers = {"key": target.key_envelope, "value": target.value_envelope}
    learned: dict[SchemaIdentity, bytes] = {}
    for part, reader in readers.items():
        if reader is not None:
            learned |= reader.learned(schema_ids[part])
    return learned


def _attempt(step: Callable[[], None]) -> ContextError | None:
    try:
        step()
    except ContextError as error:
        return error
    return None


def _translate(reading: LogReading, writer: RangeWriter) -> None:
    with closing(reading.records()) as groups:
        for records in groups:
            writer.write(records)


def _budget(task: TranslateTask) -> float:
    """Limit reading, so that storage credentials outlast the upload."""
    left = task.target.objects.seconds_left
    if left is None:
        return task.budget_seconds
    return min(task.budget_seconds, max(LEAST_SECONDS, left * _READING_SHARE))
