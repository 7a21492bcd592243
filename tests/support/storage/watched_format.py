"""The archiver's format with a test that watches its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from archiver.observer import ignore
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import Block, SegmentFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """`opens` gets paths, `reads` field ids, `batches` each batch before the reader returns it."""

    opens: Callable[[str], object] = ignore
    reads: Callable[[frozenset[int] | None], object] = ignore
    batches: Callable[[pa.RecordBatch], object] = ignore
    closes: Callable[[], object] = lambda: None
    batch_rows: int | None = None
    decodes_all: bool = False


def watched_formats(**watch: Any) -> SegmentFormats:
    return SegmentFormats(written=WatchedFormat(FORMATS.written, Watch(**watch)))


class WatchedFormat:
    def __init__(self, plain: SegmentFormat, watch: Watch) -> None:
        self._plain = plain
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def open(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> WatchedReader:
        self._watch.opens(path)
        return WatchedReader(self._plain.open(objects, path, reads_all=reads_all), self._watch)


class WatchedReader:
    def __init__(self, plain: Any, watch: Watch) -> None:
        self._plain = plain
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def read(self, block: Block, field_ids: frozenset[int] | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        self._watch.reads(field_ids)
        for batch in self._plain.read(block, field_ids, **options):
            step = self._watch.batch_rows or batch.num_rows
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                self._watch.batches(part)
                yield part

    def to_decode(
        self, block: Block, needed: frozenset[int], *, without: frozenset[int] = frozenset()
    ) -> frozenset[int] | None:
        if self._watch.decodes_all:
            return None
        columns: frozenset[int] | None = self._plain.to_decode(block, needed, without=without)
        return columns

    def close(self) -> None:
        self._watch.closes()
        self._plain.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
