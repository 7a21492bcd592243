"""The frozen, picklable values that ingest, registry and tables exchange. Ranges are half-open."""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias
from uuid import UUID

from ulid import ULID

from catalog.digests import add_digests
from catalog.partitioning import UNPLACED, PartitionTuple
from catalog.recognition import Recognition
from catalog.value_terms import ValueTerms

if TYPE_CHECKING:
    from schema_mapping.columns.evolution import Change

FORMAT_VERSION = 1
"""`archiver.format-version` of the tables and files that this code writes. A newer one is refused."""

_ULID = 26

SchemaNumber: TypeAlias = int | UUID
"""What records name a schema by: an id, which counts within a context of the schema registry, or a GUID."""


class SchemaIdentity(NamedTuple):
    """`context` is like `:.team:`, empty for the default and GUIDs."""

    number: SchemaNumber
    context: str = ""


def new_id() -> str:
    """Make a ULID, which sorts by time: 26 characters."""
    return str(ULID())


def file_name(path: str) -> str:
    """It identifies a file of the archiver even after a move: it has a ULID."""
    return path.rpartition("/")[2]


def ulid_in(path: str) -> str | None:
    stem = file_name(path).rpartition(".")[0]
    name = stem[-_ULID:].upper()
    return name if len(name) == _ULID and name.isalnum() else None


class FileState(StrEnum):
    """A range's way to the table (docs/concepts.md)."""

    UPLOADED = "uploaded"
    """The fence accepted it. Its files are in the object store and wait for a commit."""
    COMMITTED = "committed"
    """It is in the table."""
    REJECTED = "rejected"
    """It will never be committed: another range covers its offsets, or a file is not as described."""
    REPLACED = "replaced"
    """It was in the table until a rewrite put its records into other files, or removed them on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """`topic_id` is Kafka's, None if brokers have none; `id` is the registry's."""

    id: int
    cluster_id: str
    topic: str
    topic_id: UUID | None
    table: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"topic_id": str(self.topic_id) if self.topic_id else None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        topic_id = value["topic_id"]
        return cls(**{**value, "topic_id": UUID(topic_id) if topic_id else None})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffset:
    """The next offset to archive, and the last leader epoch (-1: none)."""

    next_offset: int
    leader_epoch: int = -1


FIRST_FORMAT: Final = "parquet"
"""The format of a file whose description names none: older archivers wrote only this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileInfo:
    """A data file as Iceberg's manifests describe it. Maps are by field id.

    `raw_values` are kept whole in `__raw__`. Bounds are in single-value serialization, timestamps Kafka's in ms.
    `digest` (docs/digest.md) is None for older files, `recognition` if not counted. `is_sorted` if rows are by
    (partition, offset). The last three fields aren't in the JSON.
    """

    path: str
    size_bytes: int
    rows: int
    partition: PartitionTuple = UNPLACED
    raw_values: int = 0
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    digest: str | None = None
    format: str = FIRST_FORMAT
    recognition: Recognition | None = None
    is_sorted: bool = field(default=False, compare=False)
    values: ValueTerms | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Field ids as strings, bounds as base64, without the first format."""
        return {
            "path": self.path,
            "size_bytes": self.size_bytes,
            "rows": self.rows,
            **self.partition.to_json(),
            "raw_values": self.raw_values,
            **{name: {str(key): count for key, count in getattr(self, name).items()} for name in _COUNTS},
            **{name: {str(key): _text(bound) for key, bound in getattr(self, name).items()} for name in _BOUNDS},
            "split_offsets": list(self.split_offsets),
            "min_timestamp": self.min_timestamp,
            "max_timestamp": self.max_timestamp,
            "digest": self.digest,
            **({} if self.format == FIRST_FORMAT else {"format": self.format}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        counts = {name: {int(key): count for key, count in value[name].items()} for name in _COUNTS}
        bounds = {name: {int(key): a2b_base64(text) for key, text in value[name].items()} for name in _BOUNDS}
        plain = {name: item for name, item in value.items() if name not in _PARTITION}
        return cls(
            **{**plain, **counts, **bounds, "split_offsets": tuple(value["split_offsets"])},
            partition=PartitionTuple.from_json(value),
        )


_PARTITION = frozenset(("partition_value", "partitioned_by", "partition_values"))
_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


def file_json(file: DataFileInfo) -> dict[str, Any]:
    counted = {} if file.recognition is None else {"recognition": file.recognition.to_json()}
    return {"file": file.to_json(), **counted}


def file_from_json(value: Mapping[str, Any]) -> DataFileInfo:
    return recognized(DataFileInfo.from_json(value["file"]), value.get("recognition"))


def recognized(file: DataFileInfo, counts: Mapping[str, Any] | None) -> DataFileInfo:
    return file if counts is None else replace(file, recognition=Recognition.from_json(counts))


NO_DETAILS: Mapping[str, Any] = {**{name: {} for name in (*_COUNTS, *_BOUNDS)}, "split_offsets": []}
"""Merged over a file's JSON, this removes what the manifest entry says of the columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedRange:
    """A range of one partition, from translation to commit.

    The `files` hold exactly its records, and are committed together; none without surviving records. `leader_epoch` is
    the last one. `lost` offsets were missing in the log, and accepted.
    """

    id: str
    topic: str
    partition: int
    start_offset: int
    end_offset: int
    schema_version: int
    leader_epoch: int = -1
    files: tuple[DataFileInfo, ...]
    created_ms: int
    lost: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.start_offset < self.end_offset:
            msg = f"a range of {self.topic}/{self.partition} must hold at least one offset: {self.span}"
            raise ValueError(msg)

    @property
    def span(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"

    @property
    def file(self) -> DataFileInfo | None:
        """Raises ValueError for several files."""
        if len(self.files) > 1:
            msg = f"{self.topic}/{self.partition} {self.span} is in {len(self.files)} files"
            raise ValueError(msg)
        return self.files[0] if self.files else None

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def digest(self) -> str | None:
        return add_digests(file.digest for file in self.files)

    def to_json(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in _PLAIN}
        counted = [file.recognition and file.recognition.to_json() for file in self.files]
        if any(count is not None for count in counted):
            plain["recognition"] = counted
        if len(self.files) > 1:
            return plain | {"files": [file.to_json() for file in self.files]}
        return plain | {"file": self.files[0].to_json() if self.files else None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        listed = value["files"] if "files" in value else filter(None, (value["file"],))
        counted = chain(value.get("recognition", ()), repeat(None))
        described = zip(map(DataFileInfo.from_json, listed), counted, strict=False)
        files = tuple(recognized(file, counts) for file, counts in described)
        return cls(**{name: value[name] for name in _PLAIN if name in value}, files=files)


_PLAIN = (
    "id",
    "topic",
    "partition",
    "start_offset",
    "end_offset",
    "schema_version",
    "leader_epoch",
    "created_ms",
    "lost",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """`rejected` ranges don't continue their partition."""

    accepted: tuple[TranslatedRange, ...]
    rejected: tuple[TranslatedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    ranges: int
    rows: int
    size_bytes: int
    files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecord:
    version: int
    created: datetime
    fingerprint: str
    changes: tuple[Change, ...]


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
