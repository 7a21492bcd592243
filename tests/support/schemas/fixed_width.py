"""A test format of fixed-width records.

Big-endian: `int` and `date` (days) have 4 bytes, `long`, `time` (microseconds) and `decimal` (unscaled) 8.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import StructType

from archiver.schemas.registry.envelope import UNKNOWN_SCHEMA_ID, EnvelopeVerdict, head_bytes
from archiver.schemas.registry.value_heads import Numbers, ValueHeads
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping import LedgerEntry, MappingOptions, names, register
from schema_mapping.columns.arrow import arrow_struct
from schema_mapping.columns.docs import Comments
from schema_mapping.columns.expansion import CutStruct
from schema_mapping.columns.graph import ColumnGraph, GraphField
from schema_mapping.columns.iceberg import iceberg_struct
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.ledger import Root
from schema_mapping.columns.paths import Path
from schema_mapping.columns.types import AnyColumnType, ColumnType, DecimalColumn, FixedColumn, read_type
from schema_mapping.errors import KernelError
from schema_mapping.value_format import DeclaredField, DeclaredSchema, ExcludedField, Lengths, Places

FORMAT: Final = "fixed_width"
RECORD: Final = "record"
DAY_US: Final = 86_400_000_000
YEAR_1, YEAR_9999 = -719_162, 2_932_896
_NUMBERS: Final[dict[AnyColumnType, str]] = {ColumnType.INT: ">i4", ColumnType.DATE: ">i4"}
_ARROW: Final = {ColumnType.INT: pa.int32(), ColumnType.DATE: pa.date32(), ColumnType.TIME: pa.time64("us")}

Matrix = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedField:
    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSchema:
    fields: tuple[FixedField, ...]
    envelope: bytes | None = None

    @property
    def format(self) -> str:
        return FORMAT

    @property
    def messages(self) -> tuple[str, ...]:
        return (RECORD,)

    @classmethod
    def of(cls, **types: str) -> Self:
        return cls(fields=tuple(FixedField(name=name, type=kind) for name, kind in types.items()))


@dataclass(frozen=True, kw_only=True)
class ReadFixedSchema:
    schema: FixedSchema

    def fingerprint(self) -> str:
        facts = [FORMAT, [[field.name, field.type] for field in self.schema.fields]]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def columns(self, options: MappingOptions) -> ColumnGraph:
        fields = (
            GraphField(step=field.name, name=field.name, held=read_type(field.type)) for field in self.schema.fields
        )
        return ColumnGraph(root=RECORD, structs={RECORD: tuple(fields)})

    def comments(self) -> Comments:
        return {(RECORD, field.name): field.comment for field in self.schema.fields if field.comment}

    def compile(self, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool) -> FixedMapping:
        return FixedMapping(source=self.schema, ids=ids, options=options, keep_raw=keep_raw)


@dataclass(frozen=True, kw_only=True)
class FixedMapping:
    source: FixedSchema
    ids: ColumnIds
    options: MappingOptions = field(default_factory=MappingOptions)
    keep_raw: bool = False

    @property
    def takes_dictionaries(self) -> bool:
        return False

    @property
    def fingerprint(self) -> str:
        return ReadFixedSchema(schema=self.source).fingerprint()

    @property
    def messages(self) -> tuple[str, ...]:
        return (RECORD,)

    @property
    def cuts(self) -> tuple[CutStruct, ...]:
        return ()

    @property
    def unknown_ids(self) -> frozenset[int]:
        return frozenset()

    @property
    def column_ids(self) -> frozenset[int]:
        return frozenset(column.field_id for column in self.ids.columns)

    @cached_property
    def arrow_type(self) -> pa.StructType:
        return arrow_struct(ReadFixedSchema(schema=self.source).columns(self.options), self.ids)

    @property
    def iceberg_type(self) -> StructType:
        return iceberg_struct(self.arrow_type)

    def decode(
        self, values: pa.BinaryArray, *, which: Places | None = None, prefix_lengths: Lengths | None = None
    ) -> pa.StructArray:
        heads = ValueHeads.of(values)
        before = np.zeros(len(values), np.int32) if prefix_lengths is None else prefix_lengths
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        whole = valid & (heads.sizes - before == self._width)
        errors = np.full(len(values), None, dtype=object)
        errors[valid & ~whole] = "wrong_length@0"
        good = whole.copy()
        places = np.flatnonzero(whole)
        at = (heads.starts[places] + before[places])[:, None] + np.arange(self._width)
        bodies = np.zeros((len(values), self._width), np.uint8)
        bodies[places] = heads.data[at]
        for start, kind, part in self._parts(bodies):
            bad = whole & ~_fits(kind, part)
            errors[bad], good[bad] = f"bad_value@{start}", False
        bodies[~good] = 0
        columns = [_column(kind, part, good) for _, kind, part in self._parts(bodies)]
        kept = pa.array(valid & ~good if not self.keep_raw else valid)
        plain = values.cast(pa.binary())
        specials: dict[str, pa.Array] = {
            names.PREFIX: pc.if_else(pa.array(good & (before > 0)), _prefixes(plain, before), None),
            names.RAW: pc.if_else(kept, plain, pa.scalar(None, pa.binary())),
            names.ERR: pa.array(errors, pa.string()),
        }
        rest = list(self.arrow_type)[len(columns) :]
        columns += [specials.get(entry.name, pa.nulls(len(values), entry.type)) for entry in rest]
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow_type), mask=pa.array(~valid))

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        if [entry.name for entry in rows.type] != [entry.name for entry in self.arrow_type]:
            raise KernelError("rows to encode don't have the mapping's type", found=str(rows.type))
        bodies = np.zeros((len(rows), self._width), np.uint8)
        for position, (_, kind, part) in enumerate(self._parts(bodies)):
            part[:] = _bytes(kind, rows.field(position), part.shape[1])
        offsets = pa.py_buffer((np.arange(len(rows) + 1) * self._width).astype(np.int32))
        body = pa.Array.from_buffers(pa.binary(), len(rows), [None, offsets, pa.py_buffer(bodies)])
        prefix = rows.field(names.PREFIX).fill_null(b"")
        whole = pc.coalesce(rows.field(names.RAW), pc.binary_join_element_wise(prefix, body, b""))
        return pc.if_else(rows.is_valid(), whole, pa.scalar(None, pa.binary()))

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "fields": [asdict(field) for field in self.source.fields],
            "keep_raw": self.keep_raw,
            "options": self.options.to_json(),
            "columns": self.ids.to_json(),
        }

    def schema(self, envelope: bytes | None) -> FixedSchema:
        return FixedSchema(fields=self.source.fields, envelope=envelope)

    def declared(self, path: Path) -> DeclaredField:
        result = next(field for field in self.source.fields if field.name == path[0])
        return DeclaredField(name=result.name, type=f"{result.type} ({_width(read_type(result.type))} bytes)")

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]:
        return ()

    @property
    def _width(self) -> int:
        return sum(_width(read_type(field.type)) for field in self.source.fields)

    def _parts(self, bodies: Matrix) -> Iterator[tuple[int, AnyColumnType, Matrix]]:
        at = 0
        for column in self.source.fields:
            kind = read_type(column.type)
            yield at, kind, bodies[:, at : at + _width(kind)]
            at += _width(kind)


@dataclass(frozen=True, slots=True)
class FixedWidthFormat:
    name: str = FORMAT

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ReadFixedSchema:
        assert isinstance(schema, FixedSchema)
        return ReadFixedSchema(schema=schema)

    def mapping(self, data: Mapping[str, Any]) -> FixedMapping:
        return FixedMapping(
            source=FixedSchema(fields=tuple(FixedField(**value) for value in data["fields"])),
            ids=ColumnIds.from_json(data["columns"]),
            options=MappingOptions.from_json(data["options"]),
            keep_raw=data["keep_raw"],
        )

    def load_encoder(self) -> None: ...


register(FixedWidthFormat())


@dataclass(frozen=True, slots=True, kw_only=True)
class IdAlone:
    known: tuple[SchemaNumber, ...]
    messages: tuple[str, ...] = (RECORD,)
    min_bytes: int = 0

    def verdicts(
        self, schema_id: SchemaNumber, rows: Numbers, column: ValueHeads
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        length = head_bytes(schema_id)
        yield (
            rows,
            EnvelopeVerdict(length, None, 0) if schema_id in self.known else EnvelopeVerdict(length, UNKNOWN_SCHEMA_ID),
        )

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return {}

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> IdAlone:
        return self


def record(schema: FixedSchema, *values: Any) -> bytes:
    parts = zip(map(read_type, (field.type for field in schema.fields)), values, strict=True)
    return b"".join(
        value if isinstance(value, bytes) else int(value).to_bytes(_width(kind), "big", signed=True)
        for kind, value in parts
    )


def _width(kind: AnyColumnType) -> int:
    match kind:
        case DecimalColumn():
            return 8
        case FixedColumn():
            return kind.size
        case ColumnType.UUID:
            return 16
        case _:
            return int(_NUMBERS.get(kind, ">i8")[-1])


def _numbers(kind: AnyColumnType, part: Matrix) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(part).view(_NUMBERS.get(kind, ">i8"))[:, 0].astype(np.int64)


def _fits(kind: AnyColumnType, part: Matrix) -> Flags:
    match kind:
        case DecimalColumn():
            number = _numbers(kind, part)
            return (number > -(10**kind.precision)) & (number < 10**kind.precision)
        case ColumnType.DATE:
            number = _numbers(kind, part)
            return (number >= YEAR_1) & (number <= YEAR_9999)
        case ColumnType.TIME:
            number = _numbers(kind, part)
            return (number >= 0) & (number < DAY_US)
        case _:
            return np.ones(len(part), bool)


def _column(kind: AnyColumnType, part: Matrix, good: Flags) -> pa.Array:
    size, validity = len(part), pa.array(good).buffers()[1]
    match kind:
        case DecimalColumn():
            number = _numbers(kind, part)
            data = np.stack([number, number >> 63], axis=1)
            return pa.Array.from_buffers(
                pa.decimal128(kind.precision, kind.scale), size, [validity, pa.py_buffer(data.tobytes())]
            )
        case FixedColumn():
            return pa.Array.from_buffers(pa.binary(kind.size), size, [validity, pa.py_buffer(part.tobytes())])
        case ColumnType.UUID:
            raw = pa.Array.from_buffers(pa.binary(16), size, [validity, pa.py_buffer(part.tobytes())])
            return pa.ExtensionArray.from_storage(pa.uuid(), raw)
        case _:
            width = np.int32 if _width(kind) == 4 else np.int64
            data = pa.py_buffer(_numbers(kind, part).astype(width).tobytes())
            return pa.Array.from_buffers(_ARROW.get(kind, pa.int64()), size, [validity, data])


def _bytes(kind: AnyColumnType, column: pa.Array, width: int) -> Matrix:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    column = pa.concat_arrays([column])  # from its first row on
    stored = 16 if isinstance(kind, DecimalColumn) else width
    data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * stored :][: len(column) * stored]
    rows = data.reshape(len(column), stored)
    return rows if isinstance(kind, FixedColumn) or kind is ColumnType.UUID else rows[:, :width][:, ::-1]


def _prefixes(values: pa.BinaryArray, lengths: Lengths) -> pa.BinaryArray:
    texts = zip(values.to_pylist(), lengths.tolist(), strict=True)
    return pa.array([None if value is None else value[:length] for value, length in texts], pa.binary())
