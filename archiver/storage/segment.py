"""The interface of a file format: writers and readers of one immutable file of archived rows.

Other rooms see rows as Arrow batches with the columns of the topic's table, and never name a format. A file holds rows
sorted by (partition, offset), in blocks. A reader can skip a block if it holds no row that was asked for. If a reader
isn't sure, it keeps the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

import pyarrow as pa

from archiver.storage.objects import ListedObject, ObjectStore
from archiver.storage.spool_file import SpoolFile
from catalog.model import DataFileInfo
from catalog.partitioning import PartitionTuple
from catalog.recognition import Recognition
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOrigin:
    """The topic, partition and range of offsets that a file holds.

    `topic_id` is the topic's UUID as text, empty if the cluster has none. `start_offset` is inclusive, `end_offset`
    exclusive. They say which offsets the range covers, not how many rows there are: compaction and transactions leave
    gaps. If the records of the range are in several `files`, all of them have the same `range_id`, and one alone isn't
    the whole range.
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
    """What all rows of a file have in common.

    `schema` is `RowMapping.arrow_schema`, with field ids in the metadata of every field. `mapping` is the text of
    `RowMapping.to_json()`; the file keeps it, so that a replay needs nothing else. `table_properties` are those of the
    Iceberg table; the metrics modes among them are used. `bloom_filters` are the columns that get one, by field id,
    with the share of false positives to aim at. Columns that can't have one get none. A rewritten file may keep rows of
    other schema versions: then `other_mappings` has their mappings, and `schema` has the columns of all.
    """

    schema: pa.Schema
    mapping: str
    schema_version: int
    table_properties: Mapping[str, str] = field(default_factory=dict)
    bloom_filters: Mapping[int, float] = field(default_factory=dict)
    other_mappings: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, rows: RowMapping, table_properties: Mapping[str, str], bloom_filters: Mapping[int, float] | None = None
    ) -> Self:
        """Make the layout of a file whose rows are all written by one mapping."""
        return cls(
            schema=rows.arrow_schema,
            mapping=rows.text,
            schema_version=rows.schema_version,
            table_properties=table_properties,
            bloom_filters=bloom_filters or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentMetadata:
    """What a file says about itself. In files rewritten by other writers everything but `rows` is None.

    `digest` is the digest of the rows (docs/digest.md). It is None if the file has none of the algorithm known here.
    `recognition` says how well the schema fitted the rows, None if that wasn't counted.
    `other_mappings` are, by version, the mappings of rows that have another version than `schema_version`. `place` is
    the file's partition in a table that is partitioned by columns.
    """

    rows: int
    origin: SegmentOrigin | None
    mapping: str | None
    schema_version: int | None
    format_version: int | None
    digest: str | None = None
    other_mappings: Mapping[int, str] = field(default_factory=dict)
    recognition: Recognition | None = None
    place: PartitionTuple | None = None

    @property
    def mappings(self) -> Mapping[int, str]:
        """The mappings that wrote the rows, by schema version, as texts of `RowMapping.to_json()`."""
        if self.mapping is None or self.schema_version is None:
            return self.other_mappings
        return {**self.other_mappings, self.schema_version: self.mapping}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """The rows that a reader asks for: one partition, offsets from `start_offset` to just before `end_offset`.

    `min_timestamp` (ms) leaves out what can't hold a record with this timestamp or a later one. None asks for all.
    """

    partition: int
    start_offset: int = 0
    end_offset: int = 2**63 - 1
    min_timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a file that is read or skipped as a whole. `first_row` is the position of its first row in the file.

    All offsets of its rows lie between `low_offset` and `high_offset`, both included. These are None if the file
    doesn't say. `is_sorted` is the file's claim that its rows are in the order of (partition, offset).
    """

    index: int
    first_row: int
    rows: int
    size_bytes: int
    low_offset: int | None
    high_offset: int | None
    is_sorted: bool


class SegmentWriter(Protocol):
    """Writes one file to the local spool. Its memory is bounded by one block, whatever the file's size."""

    @property
    def rows(self) -> int:
        """How many rows were handed over so far."""

    @property
    def size_bytes(self) -> int:
        """How many bytes the file has so far, with an estimate for rows not written yet. Never falls. For rotation."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows with the layout's schema. The file claims to be sorted if they come in order of offset.

        Raises StorageError if the spool refuses the bytes, or if the batch doesn't have the layout's schema.
        """

    def close(
        self,
        *,
        origin: SegmentOrigin | None,
        path: str,
        partition_value: int,
        digest: str | None = None,
        recognition: Recognition | None = None,
        partition: PartitionTuple | None = None,
    ) -> DataFileInfo:
        """Finish the local file. Describe it as the data file that it becomes at `path` once it is uploaded.

        `origin` is None if the rows don't come from one range of a log. `partition_value` is the ordinal of the time
        partition (hours, days or months since 1970). `digest` is the digest of the records that the rows were made
        from, `recognition` says how well the schema fitted them. `partition` is the file's partition in a table that is
        partitioned by columns.
        """

    def abort(self) -> None:
        """Drop the file and all buffered rows. May be called twice. After `close` it does nothing: the file stays."""


class SegmentReader(Protocol):
    """Reads one open file. Use as a context manager."""

    @property
    def metadata(self) -> SegmentMetadata:
        """What the file says about itself."""

    @property
    def stored(self) -> ListedObject:
        """The object's size and time of change, as they were when it was opened. Raises the leaves of StorageError."""

    @property
    def schema(self) -> pa.Schema:
        """The file's columns in its own order and under its own names. Field ids are in each field's metadata."""

    def blocks(self, rows: RowRange | None = None) -> tuple[Block, ...]:
        """The blocks that may hold these rows, in file order. All blocks if `rows` is None."""

    def read(
        self,
        block: Block,
        field_ids: frozenset[int] | None = None,
        *,
        without: frozenset[int] = frozenset(),
        in_dictionaries: bool = False,
        is_stream: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of one block in file order, in batches of bounded size. `field_ids` selects columns.

        An id may stand for a column at any depth (4 for all of `kafka`, 11 for `kafka.offset`). Ids that the file
        doesn't have are ignored. Columns `without`, as `null_columns` gives them, are left out. With `in_dictionaries`,
        texts below `val` may come as `dictionary<int32, string>`. `is_stream` says that all rows are wanted, and that
        other blocks are read at the same time: then CPU counts more than how soon the first batch comes. Raises
        subclasses of StorageError, which name the file.
        """

    def null_columns(self, block: Block, field_ids: frozenset[int]) -> frozenset[int]:
        """Columns at or below these ids that `read` can do without: they are null in all rows of the block.

        Only what the file proves is told: a file without a checksum of its footer tells nothing.
        """

    def to_decode(
        self, block: Block, needed: frozenset[int], *, without: frozenset[int] = frozenset()
    ) -> frozenset[int] | None:
        """Look at the bytes of the columns beside those `needed`, and of those among them that are null: `without`.

        Return the ids to `read`; None stands for all. An id of `without` is among them if that column has to be read
        all the same.

        What isn't among them is as it was written, by its checksums: `read` would find no damage in it. It raises
        nothing: where there is a doubt, or an error, `read` tells.
        """

    def set_counts(self, block: Block, field_ids: frozenset[int]) -> Mapping[int, int]:
        """How many values of these columns aren't null in the block, by field id.

        Columns of which the file doesn't say it are left out. So are those that it doesn't have.
        """

    def value_bounds(self, block: Block, field_id: int) -> tuple[int, int] | tuple[bytes, bytes] | None:
        """The lowest and highest value of a column of whole numbers, texts (UTF-8) or bytes in the block.

        None if the file doesn't say it, or the column is of another type.
        """

    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class SegmentFormat(Protocol):
    """A format of files that keep rows. Values are picklable, as Spark's Python workers get them.

    Iceberg's specification has a closed list of formats for data files (avro, orc, parquet). Readers go by the format
    in the manifest, whatever the file's extension is.
    """

    @property
    def name(self) -> str:
        """Iceberg's name of the format in lower case, as manifests and `DataFileInfo.format` have it."""

    @property
    def extension(self) -> str:
        """The extension of file names, without a dot."""

    def start(self, spool_file: SpoolFile, layout: SegmentLayout) -> SegmentWriter:
        """Start to write a file, into a new file of the local spool."""

    def open(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> SegmentReader:
        """Open a file of the object store. Raises subclasses of StorageError, which name the file.

        `reads_all` says that every block will be read: a small file may then be fetched at once.
        """

    def describe(
        self, objects: ObjectStore, path: str, *, partition_value: int, table_properties: Mapping[str, str]
    ) -> DataFileInfo:
        """Describe a finished file of the object store as `SegmentWriter.close` did, but without its records' times.

        It must give bounds of the ingest timestamp: they tell the file's partition if nobody knows it any more.
        """
