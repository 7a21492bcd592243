"""Record headers as the table has them: keys as text, and the bytes of those few that aren't UTF-8 beside them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from schema_mapping.columns.fixed import HEADER_TYPE, HEADERS_FIELD


def translate_headers(headers: pa.ListArray) -> pa.ListArray:
    """The column `headers` of records whose header keys are bytes: order and duplicates kept."""
    entries = headers.flatten()
    keys, raw_keys = _texts(entries.field("key"))
    fields = list(HEADER_TYPE)
    translated = pa.StructArray.from_arrays([keys, entries.field("value"), raw_keys], fields=fields)
    offsets = pc.subtract(headers.offsets, headers.offsets[0])
    return pa.ListArray.from_arrays(offsets, translated, type=HEADERS_FIELD.type)


def _texts(keys: pa.BinaryArray) -> tuple[pa.StringArray, pa.BinaryArray]:
    """Keys as text, and the bytes of those that aren't UTF-8 (null elsewhere)."""
    try:
        return keys.cast(pa.string()), pa.nulls(len(keys), pa.binary())
    except pa.ArrowInvalid:
        return _mended(keys)


def _mended(keys: pa.BinaryArray) -> tuple[pa.StringArray, pa.BinaryArray]:
    """The same where some keys aren't UTF-8: each distinct key is looked at once."""
    coded = keys.dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    texts = [key.decode("utf-8", "replace") for key in distinct]
    raw = [None if text.encode("utf-8") == key else key for text, key in zip(texts, distinct, strict=True)]
    return pa.array(texts, pa.string()).take(coded.indices), pa.array(raw, pa.binary()).take(coded.indices)
