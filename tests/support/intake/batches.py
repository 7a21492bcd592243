"""Batches of clients."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from archiver.intake.batches import ROW_COLUMNS, IntakeBatch


def rows_of(values: list[bytes]) -> pa.RecordBatch:
    columns = {
        "timestamp": pa.array([-1] * len(values), pa.int64()),
        "key": pa.nulls(len(values), pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.array([[] for _ in values], ROW_COLUMNS.field("headers").type),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in ROW_COLUMNS.names], schema=ROW_COLUMNS)


def batch_of(client: str, batch_id: int, values: dict[int, list[bytes]], *, incarnation: int = 0) -> IntakeBatch:
    flat = [value for partition in sorted(values) for value in values[partition]]
    return IntakeBatch(
        client=client,
        incarnation=incarnation,
        batch_id=batch_id,
        rows=tuple((partition, len(values[partition])) for partition in sorted(values)),
        digest=hashlib.sha256(repr(flat).encode()).hexdigest()[:32],
        body=rows_of(flat).serialize().to_pybytes(),
    )
