"""Values in a schema registry's envelope as rows: `__prefix__` keeps it, its meaning decides whether to decode."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.schemas.envelope import EnvelopeReader
from schema_mapping import names
from schema_mapping.mapping import Mapping, RawMapping


def decode_values(
    mapping: Mapping | RawMapping, values: pa.BinaryArray, envelope: EnvelopeReader | None
) -> pa.StructArray:
    """A topic's keys or values as rows, whether they have envelopes or not; raises as `decode_enveloped` does."""
    if envelope is None or isinstance(mapping, RawMapping):
        return mapping.decode(values)
    return decode_enveloped(mapping, values, envelope)


def decode_enveloped(mapping: Mapping, values: pa.BinaryArray, reader: EnvelopeReader) -> pa.StructArray:
    """The values as rows; one whose envelope is bad, unknown or another message's has only `__raw__` and `__err__`.

    Raises the leaves of SchemaRegistryError where the registry can't say what an id means.
    """
    found = reader.read(values)
    if not found.errors:
        return mapping.decode(values, prefix_lengths=found.lengths)
    refused = np.logical_or.reduce(list(found.errors.values()))
    readable = pc.if_else(pa.array(refused), pa.scalar(None, values.type), values)
    rows = mapping.decode(readable, prefix_lengths=found.lengths)
    columns = {field.name: column for field, column in zip(rows.type, rows.flatten(), strict=True)}
    columns[names.RAW] = pc.if_else(pa.array(refused), values.cast(pa.binary()), columns[names.RAW])
    for code, places in found.errors.items():
        columns[names.ERR] = pc.if_else(pa.array(places), code, columns[names.ERR])
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(rows.type), mask=values.is_null())
