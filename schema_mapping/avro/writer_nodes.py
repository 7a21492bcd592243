"""One writer's nodes, in the order of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

from schema_mapping.avro.kernel.tables import OPS
from schema_mapping.avro.mapped_writers import MappedWriters
from schema_mapping.avro.symbol_tables import SymbolTables
from schema_mapping.avro.types import (
    NULL,
    ArrayOf,
    AvroType,
    DecimalBytes,
    EnumSymbols,
    FixedBytes,
    MapOfValues,
    PrimitiveType,
    RecordName,
    UnionOf,
    type_name,
    without_null,
)
from schema_mapping.avro.writer_columns import VALUE, WRAPPED, column_of, joined_scalar
from schema_mapping.columns.outputs import NO_COLUMN, AnyOutput, ListOutput, MapOutput, ScalarOutput, StructOutput
from schema_mapping.columns.types import ColumnType

_OPS: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "LONG",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BYTES",
    "string": "STRING",
    "date": "DATE",
    "time-millis": "TIME_MILLIS",
    "time-micros": "TIME_MICROS",
    "timestamp-millis": "TIMESTAMP_MILLIS",
    "timestamp-micros": "TIMESTAMP_MICROS",
    "local-timestamp-millis": "TIMESTAMP_MILLIS",
    "local-timestamp-micros": "TIMESTAMP_MICROS",
    "uuid": "UUID_TEXT",
}
_WIDER: Final = {("INT", ColumnType.LONG): "INT_AS_LONG", ("FLOAT", ColumnType.DOUBLE): "FLOAT_AS_DOUBLE"}


@dataclass(slots=True, kw_only=True)
class NodeEntry:
    op: int
    out: int = NO_COLUMN
    first: int = 0
    count: int = 0
    space: int = 0
    extra: int = 0
    mask: int = 0
    is_empty: int = 0

    @property
    def values(self) -> tuple[int, ...]:
        return astuple(self)


class WriterNodes:
    def __init__(self, writers: MappedWriters, writer: int, nodes: list[NodeEntry], symbols: SymbolTables) -> None:
        self._columns = writers.columns
        self._renamed = writers.renamed
        self._types = writers.types[writer]
        self._writer = writer
        self._nodes = nodes
        self._symbols = symbols
        self._checked: dict[str, tuple[int, int]] = {}

    def add_root(self, output: StructOutput) -> int:
        kind = self._types.root
        if isinstance(kind, RecordName) is (output.struct == WRAPPED):
            return self._block([self._aside(kind)])
        if isinstance(kind, RecordName):
            row = self._record(kind, output)
        else:
            step = self._columns.steps[self._writer, NULL, WRAPPED].get(VALUE)
            child = self._checks(kind) if kind == NULL else self._field(kind, output, step)
            row = NodeEntry(op=OPS["RECORD"], first=self._block([child]), count=1)
        row.out = NO_COLUMN
        return self._block([row])

    def _block(self, rows: Sequence[NodeEntry]) -> int:
        first = len(self._nodes)
        self._nodes.extend(rows)
        return first

    def _of(self, kind: AvroType, output: AnyOutput, at: str) -> NodeEntry:
        inner, null = without_null(kind)
        if isinstance(inner, UnionOf):
            return self._union(kind, inner, output, at)
        row = self._member(inner, output) if _is_union(output) else self._plain(inner, output, at)
        if null is None:
            return row
        present = row.space if row.op == OPS["CUT"] else row.out
        return NodeEntry(op=OPS["NULLABLE"], out=present, first=self._block([row]), count=null)

    def _plain(self, kind: AvroType, output: AnyOutput, at: str) -> NodeEntry:
        match kind, output:
            case RecordName(), StructOutput():
                return self._record(kind, output)
            case ArrayOf(items), ListOutput():
                item = self._of(items, output.element, f"{at}[]")
                return NodeEntry(op=OPS["ARRAY"], out=output.output, first=self._block([item]), space=output.space)
            case MapOfValues(values), MapOutput():
                value = self._of(values, output.value, f"{at}{{}}")
                return NodeEntry(
                    op=OPS["MAP"],
                    out=output.output,
                    first=self._block([value]),
                    space=output.space,
                    extra=output.key.output,
                )
            case _, ScalarOutput() if not isinstance(kind, RecordName | ArrayOf | MapOfValues):
                return self._scalar(kind, output)
            case _:
                return self._aside(kind)

    def _record(self, kind: RecordName, output: StructOutput) -> NodeEntry:
        if output.whole is not None:
            return self._cut(kind, output)
        steps = self._columns.steps.get((self._writer, kind, output.struct), {})
        rows = [
            self._checks(NULL) if field.type == NULL else self._field(field.type, output, steps.get(field.name))
            for field in self._types.records[kind.name].fields
        ]
        is_empty = int(all(row.is_empty for row in rows))
        return NodeEntry(
            op=OPS["RECORD"], out=output.output, first=self._block(rows), count=len(rows), is_empty=is_empty
        )

    def _field(self, kind: AvroType, struct: StructOutput, step: str | None) -> NodeEntry:
        if step is None:
            return self._aside(kind)
        at = f"{struct.struct}{step}" if _is_union(struct) else f"{struct.struct}.{step}"
        return self._of(kind, struct.fields[self._renamed.get(struct.struct, {}).get(step, step)], at)

    def _union(self, kind: AvroType, inner: UnionOf, output: AnyOutput, at: str) -> NodeEntry:
        assert isinstance(kind, UnionOf)
        if isinstance(output, StructOutput) and output.whole is not None:
            return self._cut(kind, output)
        rows = []
        for branch in kind.branches:
            if branch == NULL:
                rows.append(self._checks(NULL))
            elif isinstance(output, StructOutput) and _is_union(output):
                steps = self._columns.steps.get((self._writer, inner, output.struct), {})
                rows.append(self._field(branch, output, steps.get(type_name(branch))))
            elif self._columns.chosen.get((self._writer, inner, at)) == type_name(branch):
                rows.append(self._plain(branch, output, at))
            else:
                rows.append(self._aside(branch))
        out = output.output if _is_union(output) else NO_COLUMN
        return NodeEntry(op=OPS["UNION"], out=out, first=self._block(rows), count=len(rows))

    def _member(self, kind: AvroType, output: AnyOutput) -> NodeEntry:
        assert isinstance(output, StructOutput)
        if output.whole is not None:
            return self._cut(kind, output)
        steps = self._columns.steps.get((self._writer, UnionOf((kind,)), output.struct), {})
        row = self._field(kind, output, steps.get(type_name(kind)))
        return NodeEntry(op=OPS["RECORD"], out=output.output, first=self._block([row]), count=1, is_empty=row.is_empty)

    def _cut(self, kind: AvroType, output: StructOutput) -> NodeEntry:
        assert output.whole is not None
        row = self._checks(kind)
        return NodeEntry(
            op=OPS["CUT"], out=output.whole, first=self._block([row]), space=output.output, is_empty=row.is_empty
        )

    def _aside(self, kind: AvroType) -> NodeEntry:
        row = self._checks(kind)
        return NodeEntry(op=OPS["ASIDE"], first=self._block([row]), is_empty=row.is_empty)

    def _scalar(self, kind: AvroType, output: ScalarOutput) -> NodeEntry:
        if kind == NULL:
            return self._checks(NULL)
        if joined_scalar(column_of(kind), output.column) != output.column:
            return self._aside(kind)
        row = self._checks(kind)
        row.out = output.output
        match kind:
            case PrimitiveType(name, logical):
                op = _OPS[logical or name]
                row.op = OPS[_WIDER.get((op, output.column), op)] if isinstance(output.column, ColumnType) else row.op
            case DecimalBytes(digits):
                row.op, row.count = OPS["DECIMAL_BYTES"], digits.precision
            case FixedBytes(digits=digits) if digits is not None:
                row.op, row.count = OPS["DECIMAL_FIXED"], digits.precision
            case FixedBytes() if output.column == ColumnType.BINARY:
                row.op = OPS["LONG_FIXED"]
            case _:
                pass
        return row

    def _checks(self, kind: AvroType) -> NodeEntry:  # noqa: PLR0911 - a table of types
        match kind:
            case PrimitiveType(name):
                return NodeEntry(op=OPS["NULL"], is_empty=1) if name == "null" else NodeEntry(op=OPS[_OPS[name]])
            case DecimalBytes():
                return NodeEntry(op=OPS["BYTES"])
            case FixedBytes(size=size):
                return NodeEntry(op=OPS["FIXED"], space=size)
            case EnumSymbols(symbols=symbols):
                first, lookup, mask = self._symbols.add(symbols)
                return NodeEntry(op=OPS["ENUM"], first=first, count=len(symbols), extra=lookup, mask=mask)
            case ArrayOf(items):
                return NodeEntry(op=OPS["ARRAY"], first=self._block([self._checks(items)]))
            case MapOfValues(values):
                return NodeEntry(op=OPS["MAP"], first=self._block([self._checks(values)]))
            case UnionOf(branches):
                rows = [self._checks(branch) for branch in branches]
                return NodeEntry(op=OPS["UNION"], first=self._block(rows), count=len(rows))
            case RecordName(name):
                return self._checked_record(name)

    def _checked_record(self, name: str) -> NodeEntry:
        fields = self._types.records[name].fields
        is_empty = 0
        if name not in self._checked:
            first = self._block([NodeEntry(op=OPS["NULL"])] * len(fields))
            self._checked[name] = first, len(fields)
            rows = [self._checks(field.type) for field in fields]
            self._nodes[first : first + len(fields)] = rows
            is_empty = int(all(row.is_empty for row in rows))
        else:
            first, count = self._checked[name]
            is_empty = int(all(row.is_empty for row in self._nodes[first : first + count]))
        return NodeEntry(op=OPS["RECORD"], first=first, count=len(fields), is_empty=is_empty)


def _is_union(output: AnyOutput) -> bool:
    return isinstance(output, StructOutput) and output.struct.endswith("|")
