"""Arrow fields with field ids, as the writers of files read them."""

from __future__ import annotations

import pyarrow as pa

FIELD_ID_KEY = b"PARQUET:field_id"
"""The key that Arrow and pyiceberg read a field's id from, whatever the file's format."""
DOC_KEY = b"doc"


def arrow_field(
    name: str, kind: pa.DataType, field_id: int, *, nullable: bool = True, doc: str | None = None
) -> pa.Field:
    """An Arrow field with its id, and the text that tables show for it."""
    metadata = {FIELD_ID_KEY: str(field_id).encode()}
    if doc is not None:
        metadata[DOC_KEY] = doc.encode()
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def field_id_of(field: pa.Field) -> int:
    """The id that `arrow_field` gave."""
    return int(field.metadata[FIELD_ID_KEY])
