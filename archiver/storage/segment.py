"""The seam behind which a file format stands: writers and readers of one stable file of archived rows.

Ingest and replay see rows as Arrow batches in the columns of the topic's table, and never name a format. A file holds
rows sorted by (partition, offset), in blocks that can be ruled out one by one. Pruning is conservative: unsure means
keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

import pyarrow as pa

from archiver.storage.objects import ObjectStore
from archiver.storage.spool_file import SpoolFile
from catalog.model import DataFileInfo
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOrigin:
    """Which part of which log a file holds.

    `topic_id` is the UUID as text, empty where the cluster has none. `start_offset` is inclusive, `end_offset`
    exclusive; together they are a range of offsets covered, not a count of rows (compaction and transactions leave
    gaps). Where the range's records are in several `files`, each names the same `range_id`: one of them alone isn't
    the range.
    """

    cluster_id: str
    topic: str
    topic_id: str
    partition: int
    start_offset: int
    end_offset: int
    files: int = 1
    range_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLayout:
    """What every row of a file has in common.

    `schema` is `RowMapping.arrow_schema` (field ids in the metadata of every field); `mapping` is the text of
    `RowMapping.to_json()`, kept in the file so that a replay needs nothing else; `table_properties` are the Iceberg
    table's, of which the metrics modes are honoured. A file that is rewritten may keep rows of other schema versions:
    then `other_mappings` has theirs, and `schema` the columns of all. `is_sorted` is false where rows may come in any
    order.
    """

    schema: pa.Schema
    mapping: str
    schema_version: int
    table_properties: Mapping[str, str] = field(default_factory=dict)
    other_mappings: Mapping[int, str] = field(default_factory=dict)
    is_sorted: bool = True

    @classmethod
    def of(cls, rows: RowMapping, table_properties: Mapping[str, str]) -> Self:
        """Make the layout of a file whose rows are all written by one mapping."""
        return cls(
            schema=rows.arrow_schema,
            mapping=rows.text,
            schema_version=rows.schema_version,
            table_properties=table_properties,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentMetadata:
    """What a file says about itself. Everything but `rows` is None in files that others have rewritten.

    `digest` is that of the rows (docs/digest.md), None also where the file has none of the algorithm known here.
    `other_mappings` are those of rows of other versions than `schema_version`, by version.
    """

    rows: int
    origin: SegmentOrigin | None
    mapping: str | None
    schema_version: int | None
    format_version: int | None
    digest: str | None = None
    other_mappings: Mapping[int, str] = field(default_factory=dict)

    @property
    def mappings(self) -> Mapping[int, str]:
        """The mappings that wrote the rows, by schema version, as texts of `RowMapping.to_json()`."""
        if self.mapping is None or self.schema_version is None:
            return self.other_mappings
        return {**self.other_mappings, self.schema_version: self.mapping}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows a reader asks for: one partition, offsets from `start_offset` up to and without `end_offset`.

    `min_timestamp` (ms) keeps only what may hold a record with this timestamp or a later one; None asks for all.
    """

    partition: int
    start_offset: int = 0
    end_offset: int = 2**63 - 1
    min_timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a file that is read or ruled out as a whole: `first_row` is its first row's position in the file.

    No row's offset lies outside `low_offset` and `high_offset` (both included; None where the file doesn't say).
    `is_sorted` says that its rows are known to be in the order of (partition, offset).
    """

    index: int
    first_row: int
    rows: int
    size_bytes: int
    low_offset: int | None
    high_offset: int | None
    is_sorted: bool


class SegmentWriter(Protocol):
    """One file being written to the local spool. Memory is bounded by one block, whatever the file's size."""

    @property
    def rows(self) -> int:
        """Rows handed over so far."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the file so far, with an estimate for rows not written yet; never falls. For rotation."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows of the layout's schema, in ascending order of offset.

        Raises StorageError if the spool refuses the bytes or the batch isn't of the layout's schema.
        """

    def close(
        self, *, origin: SegmentOrigin | None, path: str, partition_value: int, digest: str | None = None
    ) -> DataFileInfo:
        """Finish the local file and describe it as the data file it becomes at `path` once uploaded.

        `origin` is None where the rows are no one range of a log. `partition_value` is the time partition's ordinal
        (hours, days or months since 1970), `digest` that of the records that the rows were made from.
        """

    def abort(self) -> None:
        """Drop the file and what is buffered; harmless after `close` (the file then stays) and when called twice."""


class SegmentReader(Protocol):
    """One open file. Use as a context manager."""

    @property
    def metadata(self) -> SegmentMetadata:
        """What the file says about itself."""

    @property
    def schema(self) -> pa.Schema:
        """The file's columns in its own order and under its own names, with field ids in each field's metadata."""

    def blocks(self, rows: RowRange | None = None) -> tuple[Block, ...]:
        """Blocks that may hold such rows, in file order; all where nothing is said."""

    def read(self, block: Block, field_ids: frozenset[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Rows of one block in file order, in batches of bounded bytes; of the columns with these ids only, if given.

        An id may stand for a column at any depth (4 for all of `kafka`, 11 for `kafka.offset`); an id the file doesn't
        have is left out. Raises the leaves of StorageError, naming the file.
        """

    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class SegmentFormat(Protocol):
    """A way to keep rows in a file. Values of this type are picklable: Spark's Python workers get them.

    Iceberg's specification has a closed list of names for data files (avro, orc, parquet); readers go by the name in
    the manifest, whatever the file's path ends in.
    """

    @property
    def name(self) -> str:
        """Iceberg's name of the format, in lower case: what manifests and `DataFileInfo.format` say."""

    @property
    def extension(self) -> str:
        """End of the file name, without a dot."""

    def start(self, spool_file: SpoolFile, layout: SegmentLayout) -> SegmentWriter:
        """Start a file in the local spool, in one that was just made."""

    def open(self, objects: ObjectStore, path: str) -> SegmentReader:
        """Open a file of the object store; raises the leaves of StorageError, each naming the file."""

    def describe(
        self, objects: ObjectStore, path: str, *, partition_value: int, table_properties: Mapping[str, str]
    ) -> DataFileInfo:
        """Describe a finished file of the object store as `SegmentWriter.close` did, but for its records' times.

        It needs bounds of the ingest timestamp: they tell the file's partition where nobody knows it any more.
        """
