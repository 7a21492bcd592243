"""Schema ids in record headers, as by Confluent's serializers: a header's value is an envelope.

Apicurio's headers have Apicurio's ids, which Confluent's API doesn't know (`KafkaSerdeHeaders` in apicurio-registry).
"""

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
_FOREIGN: Final = {KEY_HEADER: b"apicurio.key.", VALUE_HEADER: b"apicurio.value."}
"""How the names of Apicurio's headers begin: `apicurio.value.globalId`, `.contentId`, `.artifactId` and more."""


@dataclass(frozen=True, slots=True)
class HeaderIds:
    rows: Int64Array
    values: pa.BinaryArray


def header_ids(headers: pa.ListArray, name: bytes) -> HeaderIds | None:
    """None if no record has the header.

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


def has_header_id(headers: pa.ListArray, name: bytes) -> npt.NDArray[np.bool_]:
    """Confluent's or Apicurio's: the payload is no plain message."""
    has_id = has_foreign_header(headers, name)
    named = header_ids(headers, name)
    if named is not None:
        has_id[named.rows] = True
    return has_id


def has_foreign_header(headers: pa.ListArray, name: bytes) -> npt.NDArray[np.bool_]:
    """`name` is Confluent's header of the same part."""
    has_any = np.zeros(len(headers), dtype=bool)
    offsets = headers.offsets.to_numpy()
    entries = headers.values.slice(offsets[0], offsets[-1] - offsets[0])
    places = _places_of(entries.field("key"), _FOREIGN[name], is_whole=False)
    has_any[np.searchsorted(offsets - offsets[0], places, side="right") - 1] = True
    return has_any


def _places_of(keys: pa.BinaryArray, name: bytes, *, is_whole: bool = True) -> Int64Array:
    _, offsets, data = keys.buffers()
    if data is None or not len(keys):
        return np.empty(0, np.int64)
    ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    text = np.frombuffer(data, np.uint8)
    sizes = ends[1:] - ends[:-1]
    places: Int64Array = np.flatnonzero(sizes == len(name) if is_whole else sizes >= len(name))
    places = places[text[ends[places]] == name[0]]
    if places.size:
        candidates = keys.take(pa.array(places))
        chosen = pc.equal(candidates, name) if is_whole else pc.starts_with(candidates, name)
        places = places[chosen.to_numpy(zero_copy_only=False)]
    return places
