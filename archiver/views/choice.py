"""The columns of a view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Self

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    TimestamptzType,
)

from archiver.errors import ConfigError
from archiver.views.column_names import TOMBSTONE, column_names
from archiver.views.columns import Bytes, Field, HeaderMap, Instant, MergedColumn, StructIsNull, ViewColumn
from archiver.views.kinds import ByteForm
from archiver.views.leaves import Leaf, leaves
from schema_mapping import names
from schema_mapping.columns.fixed import (
    FLAT_INGEST_TIMESTAMP_ID,
    HEADER_KEY_ID,
    HEADER_VALUE_ID,
    HEADERS_ID,
    INGEST_TIMESTAMP_ID,
)
from schema_mapping.superseded import Superseded


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """`wanted` and `excluded` are name patterns with `*` and `?`, ignoring case.

    Without `wanted`: all plain columns, and with `technical` the archiver's. `depth`: flattened structs below key or
    value; None: all.
    """

    wanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    depth: int | None = None
    byte_form: ByteForm = ByteForm.RAW
    technical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLeaves:
    """`names` includes former columns, whose names stay taken.

    `superseded` are older columns after a change of type. `plain` are in a view by default.
    """

    leaves: tuple[Leaf, ...]
    names: Mapping[int, str]
    plain: frozenset[int]
    superseded: Mapping[int, Superseded] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        schema: Schema,
        history: Sequence[Schema] = (),
        *,
        depth: int | None,
        given: Mapping[int, str] | None = None,
        superseded: Mapping[int, Superseded] | None = None,
        merges: bool = False,
    ) -> Self:
        """Name a schema's leaves by the table's history. `given` names and plain columns stay.

        With `merges`, a column shares the name of an older column that can be cast to its type.
        """
        every = [leaves(version, depth) for version in (*history, schema)]
        plain = frozenset(leaf.field_id for version in every for leaf in version if leaf.is_plain)
        named = column_names(every, given)
        if merges:
            named |= merged_names(named, superseded or {})
        named |= _separated(every[-1], named)
        return cls(leaves=every[-1], names=named, plain=plain, superseded=superseded or {})

    def older(self, leaf: Leaf) -> tuple[Leaf, ...]:
        """Return the integer leaves merged into a leaf, newest first."""
        name = self.names[leaf.field_id]
        same = [number for number in self.leaves if self.names[number.field_id] == name and _holds(leaf, number)]
        return tuple(sorted(same, key=lambda number: -number.field_id))

    def remark(self, leaf: Leaf) -> str:
        column = self.superseded.get(leaf.field_id)
        if column is not None and column.by in self.names:
            return f" (rows from before its type changed; newer rows: {self.names[column.by]})"
        olds = [old for old, pair in self.superseded.items() if pair.by == leaf.field_id and old in self.names]
        names = ", ".join(self.names[old] for old in sorted(olds))
        return f" (rows since its type changed; older rows: {names})" if names else ""


def _holds(leaf: Leaf, other: Leaf) -> bool:
    match leaf.type:
        case StringType():
            return isinstance(other.type, IntegerType | LongType)
        case DoubleType():
            return isinstance(other.type, IntegerType)
        case _:
            return False


def _separated(found: Sequence[Leaf], named: Mapping[int, str]) -> dict[int, str]:
    groups: defaultdict[str, list[Leaf]] = defaultdict(list)
    for leaf in found:
        groups[named[leaf.field_id]].append(leaf)
    renamed: dict[int, str] = {}
    for name, group in groups.items():
        into = next((leaf for leaf in group if any(_holds(leaf, number) for number in group)), group[0])
        for leaf in group:
            if leaf is not into and not _holds(into, leaf):
                renamed[leaf.field_id] = f"{name}_{leaf.field_id}"
    return renamed


def merged_names(named: Mapping[int, str], superseded: Mapping[int, Superseded]) -> dict[int, str]:
    shared: dict[int, str] = {}
    for old, column in sorted(superseded.items()):
        if column.is_castable and old in named and column.by in named:
            shared[old] = shared.setdefault(column.by, named[old])
    return shared


def tombstone_column(schema: Schema) -> ViewColumn:
    inside = [leaf for leaf in leaves(schema) if leaf.root == names.VAL]
    collections = tuple(leaf.path for leaf in inside if isinstance(leaf.type, ListType | MapType))
    scalars = tuple(leaf.path for leaf in inside if leaf.path not in collections)
    return ViewColumn(
        name=TOMBSTONE,
        field_id=None,
        source=StructIsNull((names.VAL,), scalars, collections),
        type=BooleanType(),
        doc="whether the record's value is null",
    )


def every_column(found: NamedLeaves, tombstone: ViewColumn, byte_form: ByteForm) -> tuple[ViewColumn, ...]:
    flat_time = next((leaf.path for leaf in found.leaves if leaf.field_id == FLAT_INGEST_TIMESTAMP_ID), None)
    columns: list[ViewColumn] = []
    merged = {older.field_id: leaf for leaf in found.leaves for older in found.older(leaf)}
    for leaf in found.leaves:
        if leaf.field_id == FLAT_INGEST_TIMESTAMP_ID or leaf.field_id in merged:
            continue
        if leaf.root == names.KAFKA and not any(column.name == TOMBSTONE for column in columns):
            columns.append(tombstone)
        column = _column(leaf, found.names[leaf.field_id], byte_form)
        older = found.older(leaf)
        if older:
            doc = f"{column.doc} (with the older values of {', '.join('.'.join(number.path) for number in older)})"
            source = MergedColumn(leaf.path, tuple(number.path for number in older), leaf.type)
            column = replace(column, source=source, doc=doc)
        elif remark := found.remark(leaf):
            column = replace(column, doc=f"{column.doc}{remark}")
        if leaf.field_id == INGEST_TIMESTAMP_ID and flat_time is not None:
            column = replace(column, source=Instant(flat_time))  # filters on it skip partitions
        columns.append(column)
    return tuple(columns)


def choose(columns: Sequence[ViewColumn], choice: ColumnChoice, plain: frozenset[int]) -> tuple[ViewColumn, ...]:
    """Raises ConfigError for a pattern without matches, and if no column is left."""
    if choice.wanted:
        chosen = _matching(columns, choice.wanted, "--columns")
    else:
        chosen = {
            column.name for column in columns if choice.technical or column.field_id is None or column.field_id in plain
        }
    left = chosen - _matching(columns, choice.excluded, "--exclude")
    if not left:
        raise ConfigError("no column is left for the view: choose more by --columns, or exclude fewer by --exclude")
    return tuple(column for column in columns if column.name in left)


def _matching(columns: Sequence[ViewColumn], patterns: Sequence[str], option: str) -> set[str]:
    selected: set[str] = set()
    for pattern in patterns:
        matches = {column.name for column in columns if fnmatchcase(column.name.lower(), pattern.lower())}
        if not matches:
            raise ConfigError(f"{option}: no column of the view matches {pattern!r}; without {option} all are printed")
        selected |= matches
    return selected


def _column(leaf: Leaf, name: str, form: ByteForm) -> ViewColumn:
    where = ".".join(leaf.path)
    doc = where if leaf.doc is None else f"{where}: {leaf.doc}"
    column = ViewColumn(name=name, field_id=leaf.field_id, source=Field(leaf.path), type=leaf.type, doc=doc)
    if leaf.field_id == HEADERS_ID:
        return replace(column, source=HeaderMap(leaf.path, form), type=_header_map(form))
    if isinstance(leaf.type, BinaryType | FixedType) and form is not ByteForm.RAW:
        return replace(column, source=Bytes(leaf.path, form), type=StringType())
    if isinstance(leaf.type, TimestamptzType):
        return replace(column, source=Instant(leaf.path))
    return column


def _header_map(form: ByteForm) -> MapType:
    return MapType(
        key_id=HEADER_KEY_ID,
        key_type=StringType(),
        value_id=HEADER_VALUE_ID,
        value_type=BinaryType() if form is ByteForm.RAW else StringType(),
        value_required=False,
    )
