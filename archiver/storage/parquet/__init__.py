"""Segments as Parquet files. Only `archiver.storage.formats` imports this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from archiver.storage.objects import ObjectStore
from archiver.storage.parquet.metrics import FORMAT
from archiver.storage.parquet.reader import ParquetSegmentReader
from archiver.storage.parquet.writer import ParquetSegmentWriter
from archiver.storage.segment import SegmentLayout, SegmentReader, SegmentWriter
from archiver.storage.spool_file import SpoolFile
from catalog.model import DataFileInfo

__all__ = ["ParquetFormat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFormat:
    """zstd's `compression_level` is for long strings."""

    name: ClassVar[str] = FORMAT
    extension: ClassVar[str] = "parquet"
    compression_level: int = 3

    def start(self, spool_file: SpoolFile, layout: SegmentLayout) -> SegmentWriter:
        return ParquetSegmentWriter(spool_file, layout, compression_level=self.compression_level)

    def open(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> SegmentReader:
        return ParquetSegmentReader(objects, path, reads_all=reads_all)

    def describe(self, objects: ObjectStore, path: str, *, table_properties: Mapping[str, str]) -> DataFileInfo:
        with ParquetSegmentReader(objects, path) as reader:
            return reader.describe(objects.size(path), table_properties)
