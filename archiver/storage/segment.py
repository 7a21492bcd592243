"""The interface of a file format.

Rows are sorted by (partition, offset), in blocks. A reader skips a block only if it certainly has no requested row.
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
from archiver.storage.value_sets import SetLimits, ValueSets
from catalog.model import DataFileInfo
from catalog.partitioning import UNPLACED, PartitionTuple
from catalog.recognition import Recognition
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOrigin:
    """`topic_id` is a UUID as text, or empty. `end_offset` is exclusive; offsets may be missing.

    The `files` of one range share a `range_id`.
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
    """Common to all rows of a file.

    Columns have field ids in their metadata. Mappings are `RowMapping.to_json()`; a rewritten file has `other_mappings`
    by version. `bloom_filters`: false-positive rates by field id. Without `set_limits` there are no value sets.
    """

    schema: pa.Schema
    mapping: str
    schema_version: int
    table_properties: Mapping[str, str] = field(default_factory=dict)
    bloom_filters: Mapping[int, float] = field(default_factory=dict)
    other_mappings: Mapping[int, str] = field(default_factory=dict)
    plain_encodings: bool = False
    set_limits: SetLimits | None = field(default_factory=SetLimits)

    @classmethod
    def of_mapping(
        cls, rows: RowMapping, table_properties: Mapping[str, str], bloom_filters: Mapping[int, float] | None = None
    ) -> Self:
        return cls(
            schema=rows.arrow_schema,
            mapping=rows.text,
            schema_version=rows.schema_version,
            table_properties=table_properties,
            bloom_filters=bloom_filters or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentMetadata:
    """In other writers' files everything but `rows` is None.

    `digest` is None for unknown algorithms (docs/digest.md). `largest_record`: a record's most bytes in a Kafka batch;
    before a rewrite it may have been larger.
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
        if self.mapping is None or self.schema_version is None:
            return self.other_mappings
        return {**self.other_mappings, self.schema_version: self.mapping}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """`end_offset` is exclusive.

    `min_timestamp` (ms) excludes blocks without a record at or after it.
    """

    partition: int
    start_offset: int = 0
    end_offset: int = 2**63 - 1
    min_timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`low_offset` and `high_offset` are inclusive, None if unknown."""

    index: int
    first_row: int
    rows: int
    size_bytes: int
    low_offset: int | None
    high_offset: int | None
    is_sorted: bool


class SegmentWriter(Protocol):
    """Writes one file to the spool, with at most one block in memory."""

    @property
    def rows(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """Written bytes plus an estimate of buffered rows. Never falls."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Rows in order make the file claim to be sorted.

        Raises StorageError if the spool refuses the bytes or the batch has another schema.
        """

    def close(
        self,
        *,
        origin: SegmentOrigin | None,
        path: str,
        digest: str | None = None,
        recognition: Recognition | None = None,
        partition: PartitionTuple = UNPLACED,
        largest_record: int | None = None,
    ) -> DataFileInfo:
        """Describe the file as the data file at `path`.

        `origin` None: rows of several ranges. Raises StorageError.
        """

    def abort(self) -> None:
        """Does nothing when repeated or after `close`."""


class SegmentReader(Protocol):
    """A context manager of one open file."""

    @property
    def metadata(self) -> SegmentMetadata: ...

    @property
    def stored(self) -> ListedObject:
        """Size and time of change when opened. Raises subclasses of StorageError."""

    @property
    def schema(self) -> pa.Schema:
        """With field ids in their metadata."""

    def blocks(self, rows: RowRange | None = None) -> tuple[Block, ...]:
        """Return blocks that may hold these rows."""

    def read(
        self,
        block: Block,
        field_ids: frozenset[int] | None = None,
        *,
        without: frozenset[int] = frozenset(),
        in_dictionaries: bool = False,
        is_stream: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read a block in file order, in bounded batches. Raises subclasses of StorageError.

        `field_ids` select at any depth; unknown ones are ignored. `without`: columns to skip (`null_columns`).
        `in_dictionaries`: texts below `val` may be `dictionary<int32, string>`. `is_stream`: save CPU rather than time
        to the first batch.
        """

    def null_columns(self, block: Block, field_ids: frozenset[int]) -> frozenset[int]:
        """Return provably null columns at or below these ids, to skip. Empty without a footer checksum."""

    def to_decode(
        self, block: Block, needed: frozenset[int], *, without: frozenset[int] = frozenset()
    ) -> frozenset[int] | None:
        """Check bytes of columns not `needed`, and of `without`. Raises nothing.

        Return ids to `read` (None: all).
        """

    def set_counts(self, block: Block, field_ids: frozenset[int]) -> Mapping[int, int]:
        """Of non-null values, if known."""

    def value_bounds(self, block: Block, field_id: int) -> tuple[int, int] | tuple[bytes, bytes] | None:
        """For whole numbers, times, texts (UTF-8) or bytes. None if unknown, or of another type."""

    @property
    def value_sets(self) -> ValueSets:
        """All values of some columns. Empty without sets, or if they are damaged.

        Raises subclasses of StorageError.
        """

    def may_contain(self, block: Block, field_id: int, value: int | str | bytes) -> bool | None:
        """By a filter. None without one, or if it is damaged.

        Raises subclasses of StorageError.
        """

    def take(self, block: Block, rows: npt.NDArray[np.int64], field_ids: frozenset[int]) -> pa.RecordBatch:
        """Rows rise within the block, at least one. Further columns may come too.

        Raises subclasses of StorageError.
        """

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class SegmentFormat(Protocol):
    """A format of Iceberg's data files (avro, orc, parquet). Picklable."""

    @property
    def name(self) -> str: ...

    @property
    def extension(self) -> str: ...

    def start(self, spool_file: SpoolFile, layout: SegmentLayout) -> SegmentWriter: ...

    def open(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> SegmentReader:
        """Raise subclasses of StorageError. `reads_all`: a small file may be fetched at once."""

    def describe(self, objects: ObjectStore, path: str, *, table_properties: Mapping[str, str]) -> DataFileInfo:
        """Describe a stored file, without record times and partition.

        Must include bounds of the ingest timestamp, which may decide the partition.
        """
