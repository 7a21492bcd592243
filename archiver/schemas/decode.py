"""Decode keys or values to rows, with or without envelopes.

`__prefix__` has the envelope's bytes, null if a header has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.schemas.registry.envelope import BAD_ENVELOPE, EnvelopeReader, Envelopes, Flags
from catalog.model import SchemaNumber
from schema_mapping import names
from schema_mapping.errors import RowsTooLargeError
from schema_mapping.value_format import NOT_ONE, ValueMapping

Decoded = TypeVar("Decoded")


def decode_values(
    mapping: ValueMapping,
    values: pa.BinaryArray,
    envelope: EnvelopeReader | None,
    *,
    headers: pa.ListArray | None = None,
    seen: set[SchemaNumber] | None = None,
) -> pa.StructArray:
    """`headers` may have the envelopes. Raises as `decode_enveloped`.

    Known ids and GUIDs are added to `seen`.
    """
    if envelope is None or not has_errors(mapping):
        return mapping.decode(values)
    return decode_enveloped(mapping, values, envelope, headers=headers, seen=seen)


def decode_in_parts(
    records: pa.RecordBatch, decode: Callable[[pa.RecordBatch], Decoded]
) -> Iterator[tuple[pa.RecordBatch, Decoded]]:
    """Yield records with their decoded form; after RowsTooLargeError halves of them. Raises it for a single row."""
    try:
        decoded = decode(records)
    except RowsTooLargeError:
        middle = records.num_rows // 2
        if middle == 0:
            raise
        yield from decode_in_parts(records.slice(0, middle), decode)
        yield from decode_in_parts(records.slice(middle), decode)
    else:
        yield records, decoded


def has_errors(mapping: ValueMapping) -> bool:
    """Raw values have no column `__err__`."""
    return bool(mapping.arrow_type.get_field_index(names.ERR) >= 0)


def decode_enveloped(
    mapping: ValueMapping,
    values: pa.BinaryArray,
    reader: EnvelopeReader,
    *,
    headers: pa.ListArray | None = None,
    seen: set[SchemaNumber] | None = None,
) -> pa.StructArray:
    """A refused envelope's row has only `__raw__` and `__err__`.

    Known ids and GUIDs are added to `seen`. Raises subclasses of SchemaRegistryError.
    """
    envelopes = reader.read(values, headers)
    if seen is not None:
        seen |= envelopes.schema_ids
    rows = _decode(mapping, values, envelopes, reader.messages)
    errors = dict(envelopes.errors)
    if envelopes.bare is not None:
        unreadable = envelopes.bare & rows.field(names.ERR).is_valid().to_numpy(zero_copy_only=False)
        errors[BAD_ENVELOPE] = errors.get(BAD_ENVELOPE, np.zeros(len(values), dtype=bool)) | unreadable
    return _with_errors(rows, values, errors) if any(places.any() for places in errors.values()) else rows


def _decode(
    mapping: ValueMapping, values: pa.BinaryArray, found: Envelopes, messages: tuple[str, ...]
) -> pa.StructArray:
    readable = values
    if found.errors:
        readable = pc.if_else(pa.array(found.which == NOT_ONE), pa.scalar(None, values.type), values)
    which = found.which
    if mapping.messages != messages:
        which = np.array([*map(mapping.messages.index, messages), NOT_ONE], dtype=np.int16)[which]
    return mapping.decode(readable, which=which, prefix_lengths=found.lengths)


def _with_errors(rows: pa.StructArray, values: pa.BinaryArray, errors: dict[str, Flags]) -> pa.StructArray:
    columns = {field.name: column for field, column in zip(rows.type, rows.flatten(), strict=True)}
    refused = pa.array(np.logical_or.reduce(list(errors.values())))
    columns[names.RAW] = pc.if_else(refused, values.cast(pa.binary()), columns[names.RAW])
    for code, places in errors.items():
        columns[names.ERR] = pc.if_else(pa.array(places), code, columns[names.ERR])
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(rows.type), mask=values.is_null())
