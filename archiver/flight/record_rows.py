"""Convert a client's columns to rows for the log."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.errors import BadBatch
from archiver.flight.batch_metadata import BatchMetadata
from archiver.intake.batches import ROW_COLUMNS, IntakeBatch
from archiver.intake.partitioner import partitions_of
from archiver.wire.record_digest import RecordDigest

NO_TIMESTAMP: Final = -1
_HEADER: Final = pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
_HEADERS: Final = pa.list_(pa.field("element", _HEADER, nullable=False))


def check_schema(schema: pa.Schema) -> None:
    """Raise BadBatch, which names the column, for a schema that isn't the records shape."""
    unknown = sorted(set(schema.names) - set(ROW_COLUMNS.names))
    if unknown or "value" not in schema.names:
        raise BadBatch(
            "the columns of records are `value`, and if needed `key`, `headers` and `timestamp`",
            columns=", ".join(schema.names)[:200],
        )
    for field in schema:
        check_field(field, field.name)


def check_field(field: pa.Field, kind: str) -> None:
    """Raise BadBatch if the field can't be the column `kind` of records."""
    if not _fits(field, kind):
        raise BadBatch(f"the column {field.name} must be {_WORDS[kind]}, and is {str(field.type)[:200]}")


_WORDS: Final = {
    "key": "binary or string",
    "value": "binary or string",
    "headers": "a list of structs of `key` and `value`, both binary or string, or a map of them",
    "timestamp": "a timestamp, or an int64 of ms since 1970",
}


def intake_batch(rows: pa.RecordBatch, metadata: BatchMetadata, *, partitions: int) -> IntakeBatch:
    """Sort `record_rows` by partition, stable. Raises BadBatch."""
    _check_times(rows.column("timestamp"), metadata)
    digest = _digest(rows, metadata)
    if metadata.partition is not None:
        counts: tuple[tuple[int, int], ...] = ((metadata.partition, rows.num_rows),) if rows.num_rows else ()
    else:
        chosen = partitions_of(rows.column("key"), partitions, turn=metadata.batch_id)
        numbers, sizes = np.unique(chosen, return_counts=True)
        counts = tuple(zip(numbers.tolist(), sizes.tolist(), strict=True))
        if len(counts) > 1:
            rows = rows.take(pa.array(np.argsort(chosen, kind="stable")))
    return IntakeBatch(
        client=metadata.client,
        incarnation=metadata.incarnation,
        batch_id=metadata.batch_id,
        rows=counts,
        digest=digest,
        body=memoryview(rows.serialize()),
    )


def record_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Raises BadBatch, which names the column."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    return pa.RecordBatch.from_arrays(
        [
            times_of(columns.get("timestamp"), batch.num_rows),
            bytes_of(columns.get("key"), batch.num_rows, "key"),
            bytes_of(columns["value"], batch.num_rows, "value"),
            headers_of(columns.get("headers"), batch.num_rows),
        ],
        schema=ROW_COLUMNS,
    )


def _fits(field: pa.Field, kind: str) -> bool:
    match kind:
        case "timestamp":
            return bool((pa.types.is_timestamp(field.type) and field.type.tz != "") or pa.types.is_int64(field.type))
        case "headers":
            return _is_headers(field.type)
        case _:
            return _is_bytes(field.type)


def _is_bytes(kind: pa.DataType) -> bool:
    return kind in (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())


def _is_headers(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_bytes(kind.key_type) and _is_bytes(kind.item_type)
    if not pa.types.is_list(kind) and not pa.types.is_large_list(kind):
        return False
    entry = kind.value_type
    return (
        pa.types.is_struct(entry)
        and [field.name for field in entry] == ["key", "value"]
        and all(_is_bytes(field.type) for field in entry)
    )


def bytes_of(column: pa.Array | None, rows: int, name: str) -> pa.Array:
    if column is None:
        return pa.nulls(rows, pa.binary())
    try:
        return column.cast(pa.binary())
    except pa.ArrowInvalid as error:
        raise BadBatch(f"the column {name} can't be taken: {error}") from None


def headers_of(column: pa.Array | None, rows: int) -> pa.Array:
    if column is None:
        offsets = pa.array(np.zeros(rows + 1, np.int32))  # `pa.repeat` takes 500 bytes for each row
        return pa.ListArray.from_arrays(offsets, pa.array([], _HEADER), type=_HEADERS)
    try:
        if pa.types.is_map(column.type):
            entry = pa.struct([pa.field("key", column.type.key_type), pa.field("value", column.type.item_type)])
            column = column.cast(pa.list_(pa.field("element", entry, nullable=False)))
        sizes = pc.list_value_length(column).fill_null(0)
        entries = column.flatten()  # without the entries of null lists
        if entries.null_count or entries.field("key").null_count:
            raise BadBatch("a header, or the key of a header, is null")
        pairs = pa.StructArray.from_arrays(
            [entries.field("key").cast(pa.binary()), entries.field("value").cast(pa.binary())], fields=list(_HEADER)
        )
        offsets = np.zeros(rows + 1, np.int32)
        np.cumsum(sizes.to_numpy(zero_copy_only=False), out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=_HEADERS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadBatch(f"the column headers can't be taken: {error}") from None


def times_of(column: pa.Array | None, rows: int) -> pa.Array:
    if column is None:
        return pa.array(np.full(rows, NO_TIMESTAMP, np.int64))
    try:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    except pa.ArrowInvalid:
        if column.type.unit == "s":
            raise BadBatch("the column timestamp is out of range: ms since 1970 must fit into 64 bits") from None
        raise BadBatch("the column timestamp has parts of a millisecond: a record's timestamp has whole ones") from None
    return column.fill_null(NO_TIMESTAMP)


def _check_times(times: pa.Array, metadata: BatchMetadata) -> None:
    given = times.filter(pc.not_equal(times, NO_TIMESTAMP))
    if not len(given):
        return
    bounds = pc.min_max(given).as_py()
    start, end = metadata.start_ts, metadata.end_ts
    if (start is not None and bounds["min"] < start) or (end is not None and bounds["max"] > end):
        raise BadBatch(
            f"rows have timestamps from {bounds['min']} to {bounds['max']}, outside of `start_ts` and `end_ts`",
            client=metadata.client,
            batch_id=metadata.batch_id,
            start_ts=start,
            end_ts=end,
        )


def _digest(rows: pa.RecordBatch, metadata: BatchMetadata) -> str:
    count = rows.num_rows
    if not count:
        return "0" * 32
    offsets = np.arange(count)
    columns = {"offset": pa.array(offsets), **{name: rows.column(name) for name in ROW_COLUMNS.names}}
    content = pa.RecordBatch.from_arrays(
        [columns[name] for name in ("offset", "timestamp", "key", "value", "headers")],
        names=["offset", "timestamp", "key", "value", "headers"],
    )
    seen = {
        "partition": pa.array(np.full(count, -1 if metadata.partition is None else metadata.partition, np.int32)),
        "timestamp_type": pa.array(np.zeros(count, np.int32)),
        **{name: content.column(name) for name in content.schema.names},
    }
    return RecordDigest.of_seen(pa.RecordBatch.from_arrays(list(seen.values()), list(seen))).text
