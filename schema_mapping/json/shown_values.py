"""Shows values: the JSON itself, on one line."""

from __future__ import annotations

import pyarrow as pa

from schema_mapping import names
from schema_mapping.value_format import SHOWN_FIELDS

_SPACES = str.maketrans("\r\n", "  ")  # between tokens: strings have them escaped


def shown_values(name: str, values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
    """Without envelopes."""
    errors, prefixes = rows.field(names.ERR).to_pylist(), rows.field(names.PREFIX).to_pylist()
    shown = [
        _shown(name, value, error, prefix)
        for value, error, prefix in zip(values.to_pylist(), errors, prefixes, strict=True)
    ]
    return pa.array(shown, pa.struct([pa.field(field, pa.string()) for field in SHOWN_FIELDS]))


def _shown(
    name: str, value: bytes | None, error: str | None, prefix: bytes | None
) -> tuple[str | None, str | None, str | None] | None:
    if value is None:
        return None
    if error is not None:
        return None, None, f"not decoded: {error}"
    return name, value[len(prefix or b"") :].decode().translate(_SPACES).strip(), None
