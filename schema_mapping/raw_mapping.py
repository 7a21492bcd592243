"""Keys and values without a schema: `__raw__` is the only column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from schema_mapping import names
from schema_mapping.columns.arrow import arrow_field
from schema_mapping.columns.expansion import CutStruct
from schema_mapping.columns.ledger import LedgerEntry, Root
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.paths import Path
from schema_mapping.errors import DescriptorError
from schema_mapping.value_format import DeclaredField, DeclaredSchema, ExcludedField, Lengths, Places, ValueSchema

if TYPE_CHECKING:
    from pyiceberg.types import StructType

RAW_FORMAT: Final = "raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMapping:
    """A struct with only `__raw__`, always set."""

    raw_id: int
    fingerprint: str = field(default=RAW_FORMAT, init=False)
    keep_raw: bool = field(default=True, init=False)

    @property
    def options(self) -> MappingOptions | None:
        return None

    @property
    def messages(self) -> tuple[str, ...]:
        return ()

    @property
    def cuts(self) -> tuple[CutStruct, ...]:
        return ()

    @property
    def takes_dictionaries(self) -> bool:
        return False

    @property
    def column_ids(self) -> frozenset[int]:
        return frozenset((self.raw_id,))

    @property
    def unknown_ids(self) -> frozenset[int]:
        return frozenset()

    @property
    def arrow_type(self) -> pa.StructType:
        return _struct(self.raw_id)

    @property
    def iceberg_type(self) -> StructType:
        from schema_mapping.columns.iceberg import iceberg_struct

        return iceberg_struct(self.arrow_type)

    def decode(
        self,
        values: pa.Array | pa.ChunkedArray,
        *,
        which: Places | None = None,  # noqa: ARG002 - raw bytes are no message
        prefix_lengths: Lengths | None = None,  # noqa: ARG002 - an envelope is raw bytes, too
    ) -> pa.StructArray:
        return _by_chunk(values, self._wrap, self.arrow_type)

    def encode(self, rows: pa.StructArray | pa.ChunkedArray) -> pa.BinaryArray:
        return _by_chunk(rows, lambda chunk: chunk.flatten()[chunk.type.get_field_index(names.RAW)], pa.binary())

    def to_json(self) -> dict[str, Any]:
        return {"format": RAW_FORMAT, "raw_id": self.raw_id}

    def schema(self, envelope: bytes | None) -> DeclaredSchema | None:  # noqa: ARG002 - there is nothing to put it before
        return None

    def declared(self, path: Path) -> DeclaredField:
        """Raises KeyError: there are no fields."""
        raise KeyError(path)

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]:  # noqa: ARG002 - there are no fields
        return ()

    def _wrap(self, values: pa.BinaryArray) -> pa.StructArray:
        fields = list(self.arrow_type)
        return pa.StructArray.from_arrays([values], fields=fields, mask=values.is_null())


@lru_cache(maxsize=64)
def _struct(raw_id: int) -> pa.StructType:
    return pa.struct([arrow_field(names.RAW, pa.binary(), raw_id)])


class RawValueFormat:
    name = RAW_FORMAT

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ValueSchema:  # noqa: ARG002
        """Raises DescriptorError: raw keys and values have no schema."""
        raise DescriptorError("raw keys and values have no schema: give None", root=root)

    def mapping(self, data: Mapping[str, Any]) -> RawMapping:
        return RawMapping(raw_id=data["raw_id"])

    def load_encoder(self) -> None: ...


RAW: Final = RawValueFormat()


def _by_chunk(
    values: pa.Array | pa.ChunkedArray, convert: Callable[[pa.Array], pa.Array], result: pa.DataType
) -> pa.Array:
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    plain = (chunk.cast(pa.binary()) if pa.types.is_large_binary(chunk.type) else chunk for chunk in chunks)
    converted = [convert(chunk) for chunk in plain]
    return converted[0] if len(converted) == 1 else pa.concat_arrays(converted) if converted else pa.array([], result)
