"""Values in a schema registry's envelope as rows: `__prefix__` keeps it, its meaning decides what to decode."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.schemas.envelope import BAD_ENVELOPE, EnvelopeReader, Envelopes, Flags
from schema_mapping import names
from schema_mapping.mapping import Mapping, RawMapping
from schema_mapping.row import AnyMapping
from schema_mapping.union_mapping import NOT_ONE, UnionMapping


def decode_values(
    mapping: AnyMapping, values: pa.BinaryArray, envelope: EnvelopeReader | None, *, seen: set[int] | None = None
) -> pa.StructArray:
    """A topic's keys or values as rows, whether they have envelopes or not; raises as `decode_enveloped` does.

    The schema ids that the envelopes name, and that mean something, are added to `seen`.
    """
    if envelope is None or isinstance(mapping, RawMapping):
        assert not isinstance(mapping, UnionMapping)
        return mapping.decode(values)
    return decode_enveloped(mapping, values, envelope, seen=seen)


def decode_enveloped(
    mapping: Mapping | UnionMapping, values: pa.BinaryArray, reader: EnvelopeReader, *, seen: set[int] | None = None
) -> pa.StructArray:
    """The values as rows; one whose envelope is refused has only `__raw__` and `__err__`.

    Raises the leaves of SchemaRegistryError where the schema registry can't say what an id means, as
    `EnvelopeReader.read` does.
    """
    found = reader.read(values)
    if seen is not None:
        seen |= found.schema_ids
    rows = _decode(mapping, values, found, reader.messages)
    errors = dict(found.errors)
    if found.bare is not None:
        unreadable = found.bare & rows.field(names.ERR).is_valid().to_numpy(zero_copy_only=False)
        errors[BAD_ENVELOPE] = errors.get(BAD_ENVELOPE, np.zeros(len(values), dtype=bool)) | unreadable
    return _with_errors(rows, values, errors) if any(places.any() for places in errors.values()) else rows


def _decode(
    mapping: Mapping | UnionMapping, values: pa.BinaryArray, found: Envelopes, messages: tuple[str, ...]
) -> pa.StructArray:
    if isinstance(mapping, UnionMapping):
        places = np.array([*map(mapping.messages.index, messages), NOT_ONE], dtype=np.int16)
        return mapping.decode(values, which=places[found.which], prefix_lengths=found.lengths)
    refused = found.which == NOT_ONE
    readable = pc.if_else(pa.array(refused), pa.scalar(None, values.type), values) if found.errors else values
    return mapping.decode(readable, prefix_lengths=found.lengths)


def _with_errors(rows: pa.StructArray, values: pa.BinaryArray, errors: dict[str, Flags]) -> pa.StructArray:
    columns = {field.name: column for field, column in zip(rows.type, rows.flatten(), strict=True)}
    refused = pa.array(np.logical_or.reduce(list(errors.values())))
    columns[names.RAW] = pc.if_else(refused, values.cast(pa.binary()), columns[names.RAW])
    for code, places in errors.items():
        columns[names.ERR] = pc.if_else(pa.array(places), code, columns[names.ERR])
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(rows.type), mask=values.is_null())
