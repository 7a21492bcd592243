"""Arrow types as cache keys. Arrow's comparison ignores metadata, which holds the field ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Exact:
    """Equality includes names, nullability and metadata at every depth."""

    content: bytes
    type: pa.DataType = field(hash=False)

    @classmethod
    def of_type(cls, kind: pa.DataType) -> Self:
        return cls(pa.schema([pa.field("", kind)]).serialize().to_pybytes(), kind)

    @classmethod
    def of_schema(cls, schema: pa.Schema) -> Self:
        return cls.of_type(pa.struct(list(schema)))
