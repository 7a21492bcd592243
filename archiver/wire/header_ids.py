"""Schema ids in record headers, as by Confluent's serializers: a header's value is an envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.wire.columns import Int64Array

KEY_HEADER: Final = b"__key_schema_id"
VALUE_HEADER: Final = b"__value_schema_id"


@dataclass(frozen=True, slots=True)
class HeaderIds:
    rows: Int64Array
    values: pa.BinaryArray


def header_ids(headers: pa.ListArray, name: bytes) -> HeaderIds | None:
    """Return headers by name; None if no record has one.

    As in Confluent's Java client, the last one counts, and null counts as none.
    """
    offsets = headers.offsets.to_numpy()
    entries = headers.values.slice(offsets[0], offsets[-1] - offsets[0])
    places = _places_of(entries.field("key"), name)
    if not places.size:
        return None
    rows = np.searchsorted(offsets - offsets[0], places, side="right") - 1
    is_last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
    values = entries.field("value").take(pa.array(places[is_last]))
    has_value = values.is_valid().to_numpy(zero_copy_only=False)
    if not has_value.any():
        return None
    return HeaderIds(rows[is_last][has_value], values.filter(pa.array(has_value)))


def _places_of(keys: pa.BinaryArray, name: bytes) -> Int64Array:
    _, offsets, data = keys.buffers()
    if data is None or not len(keys):
        return np.empty(0, np.int64)
    ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    text = np.frombuffer(data, np.uint8)
    places: Int64Array = np.flatnonzero(ends[1:] - ends[:-1] == len(name))
    places = places[text[ends[places]] == name[0]]
    if places.size:
        places = places[pc.equal(keys.take(pa.array(places)), name).to_numpy(zero_copy_only=False)]
    return places


def has_header_id(headers: pa.ListArray, name: bytes) -> npt.NDArray[np.bool_]:
    has_id = np.zeros(len(headers), dtype=bool)
    named = header_ids(headers, name)
    if named is not None:
        has_id[named.rows] = True
    return has_id
