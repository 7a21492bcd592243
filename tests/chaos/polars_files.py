"""Data files written by Polars, with Iceberg's field ids and large types."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Final

import pyarrow as pa

_LARGE: Final[Mapping[pa.DataType, pa.DataType]] = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_SMALL: Final = {large: small for small, large in _LARGE.items()}


def written_by_polars(rows: pa.Table) -> bytes:
    import polars as pl

    target = BytesIO()
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(target, arrow_schema=pa.schema([_with(_LARGE, field) for field in rows.schema]))
    return target.getvalue()


def without_large_types(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([_with(_SMALL, field) for field in rows.schema]))


def _with(kinds: Mapping[pa.DataType, pa.DataType], field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_with(kinds, child) for child in kind]))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _with(kinds, kind.value_field)
        return field.with_type(pa.large_list(element) if kinds is _LARGE else pa.list_(element))
    return field.with_type(kinds.get(kind, kind))
