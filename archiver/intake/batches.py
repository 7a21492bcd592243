"""A client's batch on its way into the log, and the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from archiver.errors import BadLog
from archiver.files.records import CONTENT_COLUMNS, LOG_COLUMNS, Batches, Records
from schema_mapping.row import RowMapping

ROW_COLUMNS: Final = pa.schema([field for field in CONTENT_COLUMNS if field.name != "offset"])
"""The columns of a batch in the log. Its rows are sorted by partition."""
BATCHES: Final = ("batch", "rows")
"""Kinds of a batch's entry. An archiver that can't read rows of an older schema refuses "rows"."""
_SEQUENCES: Final = 1 << 31
_EPOCHS: Final = 1 << 15
_FINGERPRINT: Final = 32


class BatchPart(NamedTuple):
    partition: int
    base_offset: int
    rows: int

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.rows


class RowsVersion(NamedTuple):
    """The schema version that encoded rows. A restored registry may give its number to another schema."""

    number: int
    fingerprint: str | None = None

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        text = f"{row.key.fingerprint} {row.value.fingerprint}"
        return cls(row.schema_version, hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT])


def check_version(version: RowsVersion, row: RowMapping, *, topic: str) -> None:
    """Raise BadLog if `row`, the registry's, isn't what encoded the rows."""
    if version.fingerprint not in (None, RowsVersion.of(row).fingerprint):
        raise BadLog(
            "rows wait in the log that another schema encoded than the registry has under this number: its database was"
            " restored from an older state. The rows stay in the log. Run `archiver registry rebuild`, or restore a"
            " newer backup of its database",
            topic=topic,
            schema_version=version.number,
        )


class LoggedRecords(NamedTuple):
    """Records of a partition. Values that were sent as columns are read with `schema_version`."""

    partition: int
    records: Records
    schema_version: RowsVersion | None = None


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    batch_id: int
    parts: tuple[BatchPart, ...]

    def to_json(self) -> dict[str, Any]:
        return {"batch_id": self.batch_id, "parts": [part._asdict() for part in self.parts]}


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeBatch:
    """`rows` are counts by partition, in the order of `body`, a record batch in Arrow's IPC format.

    `digest` identifies repeated contents. `principal` is empty for anonymous clients.
    `schema_version` encoded the values, if they were sent as columns.
    """

    client: str
    incarnation: int
    batch_id: int
    rows: tuple[tuple[int, int], ...]
    digest: str
    body: bytes | memoryview
    principal: str = ""
    schema_version: RowsVersion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBatch:
    """`number` is the client's, unique in the topic."""

    client: str
    number: int
    incarnation: int
    batch_id: int
    digest: str
    time_ms: int
    parts: tuple[BatchPart, ...]
    principal: str = ""
    schema_version: RowsVersion | None = None

    @property
    def kind(self) -> str:
        return "batch" if self.schema_version is None else "rows"

    def to_json(self) -> dict[str, Any]:
        return {
            "client": self.client,
            "number": self.number,
            "incarnation": self.incarnation,
            "batch_id": self.batch_id,
            "digest": self.digest,
            "time_ms": self.time_ms,
            "parts": self.parts,
            **({"principal": self.principal} if self.principal else {}),
            **_version_json(self.schema_version),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LoggedBatch:
        names = ("client", "number", "incarnation", "batch_id", "digest", "time_ms")
        return cls(
            **{name: value[name] for name in names},
            parts=tuple(BatchPart(*part) for part in value["parts"]),
            principal=value.get("principal", ""),
            schema_version=_version_of(value),
        )

    def records(self, body: memoryview) -> dict[int, Records]:
        rows = pa.ipc.read_record_batch(pa.py_buffer(body), ROW_COLUMNS)
        parts: dict[int, Records] = {}
        start = 0
        for part in self.parts:
            parts[part.partition] = self._part(rows.slice(start, part.rows), part)
            start += part.rows
        return parts

    def _part(self, rows: pa.RecordBatch, part: BatchPart) -> Records:
        offsets = pa.array(np.arange(part.base_offset, part.end_offset, dtype=np.int64))
        columns = {"offset": offsets, **{name: rows.column(name) for name in ROW_COLUMNS.names}}
        return Records(
            start_offset=part.base_offset,
            end_offset=part.end_offset,
            content=pa.RecordBatch.from_arrays(
                [columns[name] for name in CONTENT_COLUMNS.names], schema=CONTENT_COLUMNS
            ),
            batches=Batches(
                first_offset=np.array([part.base_offset]),
                last_offset=np.array([part.end_offset - 1]),
                rows=np.array([part.rows]),
                times=np.array([self.time_ms]),
            ),
            log=self._log_columns(part.rows),
        )

    def _log_columns(self, rows: int) -> pa.RecordBatch:
        """As of an idempotent producer."""
        constants = {
            "timestamp_type": 0,
            "leader_epoch": -1,
            "producer_id": self.number,
            "producer_epoch": self.incarnation % _EPOCHS,
            "base_sequence": self.batch_id % _SEQUENCES,
            "attributes": 0,
        }
        columns = [
            pa.nulls(rows, field.type)
            if field.name not in constants
            else pa.array(np.full(rows, constants[field.name], field.type.to_pandas_dtype()))
            for field in LOG_COLUMNS
        ]
        return pa.RecordBatch.from_arrays(columns, schema=LOG_COLUMNS)


def _version_json(version: RowsVersion | None) -> dict[str, Any]:
    return {} if version is None else {"schema_version": version.number, "schema_fingerprint": version.fingerprint}


def _version_of(value: Mapping[str, Any]) -> RowsVersion | None:
    number = value.get("schema_version")
    return None if number is None else RowsVersion(number, value.get("schema_fingerprint"))
