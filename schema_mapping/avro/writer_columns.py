"""Several writers' columns in one graph, newest writer first.

Fields are matched by name, then by alias. Values whose type no column can hold are kept raw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from schema_mapping.avro.types import (
    NULL,
    ArrayOf,
    AvroType,
    AvroTypes,
    DecimalBytes,
    EnumSymbols,
    FixedBytes,
    MapOfValues,
    PrimitiveType,
    RecordField,
    RecordName,
    UnionOf,
    type_name,
    without_null,
)
from schema_mapping.columns.graph import ColumnGraph, GraphField, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.paths import Step
from schema_mapping.columns.types import AnyColumnType, ColumnType, DecimalColumn, FixedColumn, widens

VALUE: Final = "value"
"""The field of a value that isn't a record."""
WRAPPED: Final = "|value"
"""The struct around such a value. No record has this name."""

LARGEST_FIXED: Final = 4_096
"""The largest fixed type with a column of its kind, in which a null takes as many bytes. Larger ones are binary."""

COLUMN_OF: Final[Mapping[str, ColumnType]] = {
    "null": ColumnType.BOOLEAN,
    "boolean": ColumnType.BOOLEAN,
    "int": ColumnType.INT,
    "long": ColumnType.LONG,
    "float": ColumnType.FLOAT,
    "double": ColumnType.DOUBLE,
    "bytes": ColumnType.BINARY,
    "string": ColumnType.STRING,
    "date": ColumnType.DATE,
    "time-millis": ColumnType.TIME,
    "time-micros": ColumnType.TIME,
    "timestamp-millis": ColumnType.TIMESTAMPTZ,
    "timestamp-micros": ColumnType.TIMESTAMPTZ,
    "local-timestamp-millis": ColumnType.TIMESTAMP,
    "local-timestamp-micros": ColumnType.TIMESTAMP,
    "uuid": ColumnType.UUID,
}

Fitting: TypeAlias = tuple[int, AvroType, str]
"""A writer's number, a type of it, and the struct that has its columns."""


@dataclass(slots=True, kw_only=True)
class StructField:
    """Name, type and doc are the newest writer's."""

    name: str
    type: AvroType
    holds: Held
    aliases: tuple[str, ...] = ()
    doc: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterColumns:
    """`steps` has, by a writer's record or union, the step of each field or branch.

    `chosen` is the branch in a union's only column, if that is no struct.
    """

    root: str
    structs: Mapping[str, Mapping[str, StructField]]
    steps: Mapping[Fitting, Mapping[str, str]]
    chosen: Mapping[tuple[int, UnionOf, str], str]

    def graph(self, renamed: Mapping[str, Mapping[str, str]]) -> ColumnGraph:
        """`renamed` has steps that aren't the fields' names."""
        return ColumnGraph(
            root=self.root,
            structs={
                name: tuple(
                    GraphField(step=renamed.get(name, {}).get(step, step), name=field.name, held=field.holds)
                    for step, field in fields.items()
                )
                for name, fields in self.structs.items()
            },
        )

    def comments(self, renamed: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, Step], str]:
        return {
            (name, renamed.get(name, {}).get(step, step)): field.doc
            for name, fields in self.structs.items()
            for step, field in fields.items()
            if field.doc
        }


def join_writers(writers: Sequence[AvroTypes]) -> WriterColumns:
    joining = _Joining(writers)
    root = writers[0].root
    name = root.name if isinstance(root, RecordName) else WRAPPED
    for number, writer in enumerate(writers):
        joining.add_root(number, writer.root, name)
    return WriterColumns(root=name, structs=joining.structs, steps=joining.steps, chosen=joining.chosen)


@dataclass(slots=True)
class _Joining:
    writers: Sequence[AvroTypes]
    structs: dict[str, dict[str, StructField]] = field(default_factory=dict)
    steps: dict[Fitting, dict[str, str]] = field(default_factory=dict)
    chosen: dict[tuple[int, UnionOf, str], str] = field(default_factory=dict)
    _structs_of: dict[tuple[int, str], str] = field(default_factory=dict)

    def add_root(self, writer: int, kind: AvroType, struct: str) -> None:
        self.structs.setdefault(struct, {})
        if isinstance(kind, RecordName) and struct != WRAPPED:
            self._record(writer, kind, StructOf(struct))
        elif not isinstance(kind, RecordName) and struct == WRAPPED:
            steps = self.steps.setdefault((writer, NULL, struct), {})
            self._add(writer, struct, RecordField(name=VALUE, type=kind), steps)

    def _join(self, writer: int, kind: AvroType, holds: Held | None, at: str) -> Held | None:  # noqa: PLR0911 - a table of types
        """None if one column can't hold both types."""
        kind, _ = without_null(kind)
        if isinstance(holds, StructOf) and holds.name.endswith("|") and not isinstance(kind, UnionOf):
            return self._branches(writer, UnionOf((kind,)), holds)
        match kind:
            case UnionOf() if holds is None or (isinstance(holds, StructOf) and holds.name.endswith("|")):
                return self._branches(writer, kind, holds or StructOf(f"{at}|"))
            case UnionOf() if holds is not None:
                return self._one_branch(writer, kind, holds, at)
            case RecordName():
                return self._record(writer, kind, holds)
            case ArrayOf(items):
                if not isinstance(holds, ListOf | None):
                    return None
                element = self._join(writer, items, None if holds is None else holds.element, f"{at}[]")
                return None if element is None else ListOf(element)
            case MapOfValues(values):
                if not isinstance(holds, MapOf | None):
                    return None
                value = self._join(writer, values, None if holds is None else holds.value, f"{at}{{}}")
                return None if value is None else MapOf(ColumnType.STRING, value)
            case _:
                return joined_scalar(column_of(kind), holds)

    def _record(self, writer: int, kind: RecordName, holds: Held | None) -> Held | None:
        if holds is None:
            holds = StructOf(self._structs_of.get((writer, kind.name), kind.name))
        if not isinstance(holds, StructOf):
            return None
        self._structs_of.setdefault((writer, kind.name), holds.name)
        self.structs.setdefault(holds.name, {})
        if (writer, kind, holds.name) not in self.steps:
            steps = self.steps[writer, kind, holds.name] = {}
            for member in self.writers[writer].records[kind.name].fields:
                self._add(writer, holds.name, member, steps)
        return holds

    def _add(self, writer: int, struct: str, member: RecordField, steps: dict[str, str]) -> None:
        if member.type == NULL:
            return
        fields = self.structs[struct]
        step = _step_of(fields, member.name)
        if step in steps.values():
            step = None
        if step is None and member.name in fields:
            return
        if step is None:
            holds = self._join(writer, member.type, None, f"{struct}.{member.name}")
            assert holds is not None
            step = member.name
            fields[step] = StructField(
                name=member.name, type=member.type, holds=holds, aliases=member.aliases, doc=member.doc
            )
        else:
            column = fields[step]
            wider = self._join(writer, member.type, column.holds, f"{struct}.{step}")
            if wider is None:
                return
            column.holds = wider
            column.aliases = tuple(dict.fromkeys((*column.aliases, *member.aliases)))
        steps[member.name] = step

    def _branches(self, writer: int, kind: UnionOf, holds: StructOf) -> Held:
        members = self.structs.setdefault(holds.name, {})
        steps = self.steps.setdefault((writer, kind, holds.name), {})
        for branch in kind.branches:
            step = self._member(writer, branch, members)
            before = members.get(step)
            column = self._join(writer, branch, None if before is None else before.holds, f"{holds.name}{step}")
            if column is None or step in steps.values():
                continue
            if before is None:
                members[step] = StructField(name=_branch_name(step, members), type=branch, holds=column)
            else:
                before.holds = column
            steps[type_name(branch)] = step
        return holds

    def _member(self, writer: int, branch: AvroType, members: Mapping[str, StructField]) -> str:
        """By name, alias or a record's simple name; else the branch's name."""
        name = type_name(branch)
        aliases = {step for step in members if step in self._aliases(writer, branch)}
        short = [step for step in members if step.rpartition(".")[2] == name.rpartition(".")[2]]
        if name in members:
            return name
        return next(iter(aliases), short[0] if len(short) == 1 and isinstance(branch, RecordName) else name)

    def _aliases(self, writer: int, branch: AvroType) -> tuple[str, ...]:
        match branch:
            case RecordName(name):
                return self.writers[writer].records[name].aliases
            case EnumSymbols() | FixedBytes():
                return branch.aliases
            case _:
                return ()

    def _one_branch(self, writer: int, kind: UnionOf, holds: Held, at: str) -> Held | None:
        """The first branch that the column can hold gets it."""
        for branch in kind.branches:
            column = self._join(writer, branch, holds, at)
            if column is not None:
                self.chosen[writer, kind, at] = type_name(branch)
                return column
        return None


def _step_of(fields: Mapping[str, StructField], name: str) -> str | None:
    """By name, then by alias."""
    named = (step for step, column in fields.items() if column.name == name)
    renamed = (step for step, column in fields.items() if name in column.aliases)
    return next(named, None) or next(renamed, None)


def _branch_name(step: str, members: Mapping[str, StructField]) -> str:
    """The simple name, or the full name if that is taken."""
    short = step.rpartition(".")[2]
    return step.replace(".", "_") if any(column.name == short for column in members.values()) else short


def column_of(kind: AvroType) -> AnyColumnType:
    match kind:
        case PrimitiveType(name, logical):
            return COLUMN_OF[logical or name]
        case FixedBytes(is_uuid=True):
            return ColumnType.UUID
        case DecimalBytes(digits) | FixedBytes(digits=digits) if digits is not None:
            return DecimalColumn(digits.precision, digits.scale)
        case FixedBytes(size=size):
            return FixedColumn(size) if size <= LARGEST_FIXED else ColumnType.BINARY
        case _:
            return ColumnType.STRING


def joined_scalar(kind: AnyColumnType, holds: Held | None) -> AnyColumnType | None:
    if holds is None or kind == holds:
        return kind
    if isinstance(holds, StructOf | ListOf | MapOf):
        return None
    if widens(kind, holds):
        return holds
    return kind if widens(holds, kind) else None
