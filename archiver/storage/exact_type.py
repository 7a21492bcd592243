"""An Arrow type as the key of a cache. Arrow's comparison of types ignores metadata, which holds the field ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Exact:
    """A type. Equal only if names, nullability and metadata are equal at every depth."""

    content: bytes
    type: pa.DataType = field(hash=False)

    @classmethod
    def of_type(cls, kind: pa.DataType) -> Self:
        """Return the key of a type."""
        return cls(pa.schema([pa.field("", kind)]).serialize().to_pybytes(), kind)

    @classmethod
    def of_schema(cls, schema: pa.Schema) -> Self:
        """Return the key of a schema's columns. The schema's own metadata doesn't count."""
        return cls.of_type(pa.struct(list(schema)))
