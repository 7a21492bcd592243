"""An Arrow type as the key of a cache.

Arrow's own comparison of types looks at no metadata, and field ids are metadata. `Exact` tells types apart by all that
Arrow would write of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Exact:
    """A type. Equal to another one only if names, nullability and metadata are equal, too, at any depth."""

    content: bytes
    type: pa.DataType = field(hash=False)

    @classmethod
    def of_type(cls, kind: pa.DataType) -> Self:
        """The key of a type."""
        return cls(pa.schema([pa.field("", kind)]).serialize().to_pybytes(), kind)

    @classmethod
    def of_schema(cls, schema: pa.Schema) -> Self:
        """The key of a schema's columns, as the type of a struct. The schema's own metadata doesn't count."""
        return cls.of_type(pa.struct(list(schema)))
