"""Types of the segment format's interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_type

import pyarrow as pa

from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import (
    Block,
    RowRange,
    SegmentFormat,
    SegmentLayout,
    SegmentMetadata,
    SegmentReader,
    SegmentWriter,
)
from archiver.storage.spool_file import SpoolFile
from catalog.model import DataFileInfo

PARQUET: SegmentFormat = ParquetFormat()


def writing(format_: SegmentFormat, spool_file: SpoolFile, layout: SegmentLayout, rows: pa.RecordBatch) -> None:
    writer = format_.start(spool_file, layout)
    assert_type(writer, SegmentWriter)
    assert_type(writer.write(rows), None)
    assert_type(writer.rows, int)
    assert_type(writer.size_bytes, int)
    assert_type(writer.close(origin=None, path="s3://lake/a"), DataFileInfo)
    assert_type(writer.abort(), None)


def reading(format_: SegmentFormat, objects: ObjectStore, properties: Mapping[str, str]) -> None:
    path = f"s3://lake/a.{format_.extension}"
    with format_.open(objects, path) as reader:
        assert_type(reader.metadata, SegmentMetadata)
        blocks = reader.blocks(RowRange(partition=0))
        assert_type(blocks, tuple[Block, ...])
        assert_type(reader.read(blocks[0], frozenset({4})), Iterator[pa.RecordBatch])
    reader = format_.open(objects, path)
    assert_type(reader, SegmentReader)
    assert_type(reader.close(), None)
    described = format_.describe(objects, path, table_properties=properties)
    assert_type(described, DataFileInfo)
