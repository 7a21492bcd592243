"""CPU seconds of a thread's task by stage. Nested stages count once; `other` is the rest."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from archiver.files import row_sums, translate
from archiver.files.translate import Translator
from archiver.ingest.kafka_log.grouping import Grouper
from archiver.kafka import range_reader
from archiver.kafka.fetch import PartitionFetcher
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.writer import ParquetSegmentWriter
from archiver.wire.inflate import Inflater

STAGES: tuple[tuple[Any, str, str], ...] = (
    (PartitionFetcher, "fetch", "fetch"),
    (Inflater, "inflate", "decompress batches"),
    (range_reader, "decode_batches", "decode batches"),
    (Grouper, "push", "group batches"),
    (Grouper, "finish", "group batches"),
    (translate, "decode_values", "decode values, prove exactness"),
    (Translator, "translate", "other columns"),
    (row_sums.RecordDigest, "of_seen", "digest"),
    (FileWriter, "write", "Parquet writer"),
    (FileWriter, "close", "Parquet writer"),
    (ParquetSegmentWriter, "write", "cut row groups, choose encodings"),
    (ParquetSegmentWriter, "close", "cut row groups, choose encodings"),
    (ObjectStore, "upload", "upload"),
)
OTHER = "other"


def profiled(run: Callable[[Any], Any], task: Any) -> tuple[Any, dict[str, float]]:
    wrap_stages()
    _seconds.clear()
    started = time.process_time()
    result = run(task)
    whole = time.process_time() - started
    return result, {**_seconds, OTHER: whole - sum(_seconds.values())}


_seconds: Counter[str] = Counter()
_lock = threading.Lock()
_inside = threading.local()


@cache
def wrap_stages() -> None:
    for owner, name, stage in STAGES:
        method = owner.__dict__[name]
        if isinstance(method, classmethod):
            setattr(owner, name, classmethod(_timed(method.__func__, stage)))
        else:
            setattr(owner, name, _timed(method, stage))


def _timed(function: Callable[..., Any], stage: str) -> Callable[..., Any]:
    @wraps(function)
    def timed(*arguments: Any, **named: Any) -> Any:
        outer = getattr(_inside, "seconds", 0.0)
        _inside.seconds = 0.0
        started = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            took = time.thread_time() - started
            with _lock:
                _seconds[stage] += took - _inside.seconds
            _inside.seconds = outer + took

    return timed
