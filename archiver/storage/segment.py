"""The interface of a file format: writers and readers of one immutable file of archived rows.

A file holds rows sorted by (partition, offset), in blocks. A reader skips a block only if it certainly holds no
requested row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
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

    `topic_id` is the topic's UUID as text, or empty. `start_offset` is inclusive, `end_offset` exclusive; offsets may
    be missing in between. The `files` of one range have the same `range_id`.
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

    `schema` has field ids in every field's metadata. `mapping` is the text of `RowMapping.to_json()`. The metrics modes
    of `table_properties` are used. `bloom_filters` are rates of false positives by field id. `other_mappings` are, by
    version, the mappings of a rewritten file's other rows, whose columns `schema` has too. `plain_encodings`:
    only the encodings that every reader of the format knows.
    """

    schema: pa.Schema
    mapping: str
    schema_version: int
    table_properties: Mapping[str, str] = field(default_factory=dict)
    bloom_filters: Mapping[int, float] = field(default_factory=dict)
    other_mappings: Mapping[int, str] = field(default_factory=dict)
    plain_encodings: bool = False

    @classmethod
    def of_mapping(
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
    """The metadata of a file. In files of other writers everything but `rows` is None.

    `digest` is None for unknown algorithms (docs/digest.md). `other_mappings` are, by version, the mappings of rows
    whose version isn't `schema_version`. `place` is the file's partition in a table that is partitioned by columns.
    `largest_record` is the most bytes that a record takes in one of Kafka's batches; the file that a rewritten one was
    made of may have had a larger one.
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
    largest_record: int | None = None

    @property
    def mappings(self) -> Mapping[int, str]:
        """The mappings that wrote the rows, by schema version, as texts of `RowMapping.to_json()`."""
        if self.mapping is None or self.schema_version is None:
            return self.other_mappings
        return {**self.other_mappings, self.schema_version: self.mapping}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Requested rows: one partition, from `start_offset` to before `end_offset`.

    `min_timestamp` (ms) excludes blocks without a record at or after this time. None means all.
    """

    partition: int
    start_offset: int = 0
    end_offset: int = 2**63 - 1
    min_timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a file that is read or skipped as a whole. `first_row` is the position of its first row.

    `low_offset` and `high_offset` are inclusive bounds, None if unknown. `is_sorted` is the file's claim.
    """

    index: int
    first_row: int
    rows: int
    size_bytes: int
    low_offset: int | None
    high_offset: int | None
    is_sorted: bool


class SegmentWriter(Protocol):
    """Writes one file to the local spool. Its memory is bounded by one block."""

    @property
    def rows(self) -> int:
        """Rows received."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the file, with an estimate for unwritten rows. Never falls. For rotation."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows with the layout's schema. The file claims to be sorted if they come in order of offset.

        Raises StorageError if the spool refuses the bytes, or if the batch has another schema.
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
        largest_record: int | None = None,
    ) -> DataFileInfo:
        """Finish the local file. Describe it as the data file that it becomes at `path` once uploaded.

        `origin` is None if the rows don't come from one range of a log. `partition_value` is the ordinal of the time
        partition (hours, days or months since 1970); `partition` is set for a table that is partitioned by columns.
        `largest_record` is as in SegmentMetadata. Raises StorageError if the spool refuses the bytes.
        """

    def abort(self) -> None:
        """Drop the file and all buffered rows. Does nothing when repeated, or after `close`."""


class SegmentReader(Protocol):
    """Reads one open file. Use as a context manager."""

    @property
    def metadata(self) -> SegmentMetadata:
        """The metadata in the file."""

    @property
    def stored(self) -> ListedObject:
        """The object's size and time of change when it was opened. Raises subclasses of StorageError."""

    @property
    def schema(self) -> pa.Schema:
        """The file's columns in its order and with its names. Field ids are in each field's metadata."""

    def blocks(self, rows: RowRange | None = None) -> tuple[Block, ...]:
        """The blocks that may hold these rows, in file order. All if `rows` is None."""

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

        An id may select a column at any depth; unknown ids are ignored. `without` are columns to skip, from
        `null_columns`. With `in_dictionaries`, texts below `val` may come as `dictionary<int32, string>`. `is_stream`:
        CPU counts more than the time to the first batch. Raises subclasses of StorageError.
        """

    def null_columns(self, block: Block, field_ids: frozenset[int]) -> frozenset[int]:
        """Columns at or below these ids that are null in all rows of the block, and that `read` can skip.

        Only with proof: empty for a file without a checksum of its footer.
        """

    def to_decode(
        self, block: Block, needed: frozenset[int], *, without: frozenset[int] = frozenset()
    ) -> frozenset[int] | None:
        """Check the bytes of all columns that aren't `needed`, and of the null columns `without`.

        Return the ids to `read`, None for all; every other column is as written. Raises nothing: doubts are left to
        `read`.
        """

    def set_counts(self, block: Block, field_ids: frozenset[int]) -> Mapping[int, int]:
        """The number of non-null values of these columns in the block, by field id.

        Columns without statistics, and unknown columns, are left out.
        """

    def value_bounds(self, block: Block, field_id: int) -> tuple[int, int] | tuple[bytes, bytes] | None:
        """The lowest and highest value of a column of whole numbers, times, texts (UTF-8) or bytes in the block.

        None if the file doesn't say it, or the column is of another type.
        """

    def may_contain(self, block: Block, field_id: int, value: int | str | bytes) -> bool | None:
        """Whether the column may have this value in the block, by a filter. None if there is no filter for it.

        Raises subclasses of StorageError.
        """

    def take(self, block: Block, rows: npt.NDArray[np.int64], field_ids: frozenset[int]) -> pa.RecordBatch:
        """Read some rows of a block: rising positions in the block, at least one. Further columns may come too.

        Formats that can read parts of a block read only these. Raises subclasses of StorageError.
        """

    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class SegmentFormat(Protocol):
    """A format of files that keep rows: one of Iceberg's (avro, orc, parquet). Values are picklable."""

    @property
    def name(self) -> str:
        """Iceberg's name of the format in lower case, as in manifests and `DataFileInfo.format`."""

    @property
    def extension(self) -> str:
        """The extension of file names, without a dot."""

    def start(self, spool_file: SpoolFile, layout: SegmentLayout) -> SegmentWriter:
        """Start a file in a new file of the local spool."""

    def open(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> SegmentReader:
        """Open a file of the object store. Raises subclasses of StorageError, which name the file.

        `reads_all`: every block will be read, so a small file may be fetched at once.
        """

    def describe(
        self, objects: ObjectStore, path: str, *, partition_value: int, table_properties: Mapping[str, str]
    ) -> DataFileInfo:
        """Describe a finished file of the object store as `SegmentWriter.close` did, without its records' times.

        Must include bounds of the ingest timestamp: they give the file's partition if nothing else does.
        """
