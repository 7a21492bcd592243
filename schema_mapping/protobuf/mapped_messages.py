"""Message types with names and ids of columns.

Fields are in ascending number, each followed by its times' nanoseconds, if these have a column. At the root come
`__prefix__`, `__raw__`, `__err__` and `__form__`, then everywhere `__unrecognized__`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schema_mapping import names
from schema_mapping.columns.ids import ColumnId, ColumnIds
from schema_mapping.columns.paths import Path, nanos_step
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.field_kinds import Cardinality, EnumType, WellKnown, WireKind
from schema_mapping.protobuf.type_graph import FieldType, TypeGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class NanosColumn:
    """The nanoseconds of times: an int, or a list parallel to a list or map. `element_id` is None for an int."""

    name: str
    field_id: int
    element_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedField:
    """`oneof` is the index of a real oneof, never of a synthetic one.

    For a repeated field, `field_id` is the list's id and `element_id` the elements'. A map has `key` and `value` with
    Iceberg's ids; its `kind` has no meaning. A cut message's only child is `unrecognized_id`. `native` is the
    well-known type of a scalar column, and `nanos` the column after it.
    """

    number: int
    name: str
    source_name: str
    kind: WireKind
    cardinality: Cardinality
    explicit_presence: bool
    packed: bool
    validate_utf8: bool
    required: bool
    oneof: int | None
    enum: EnumType | None
    message: MappedMessage | None
    key: MappedField | None
    value: MappedField | None
    field_id: int
    element_id: int | None
    unrecognized_id: int | None
    native: WellKnown | None = None
    decimal: bool = False
    nanos: NanosColumn | None = None

    @property
    def is_cut(self) -> bool:
        return (
            self.message is None
            and self.native is None
            and self.kind in (WireKind.MESSAGE, WireKind.GROUP)
            and self.cardinality is not Cardinality.MAP
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmappedField:
    number: int
    kind: WireKind
    cardinality: Cardinality
    packed: bool
    oneof: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedMessage:
    """`message_set`: the old MessageSet wire format. `excluded` fields are kept in `__unrecognized__`.

    `empty`: neither fields nor room for extensions.
    """

    full_name: str
    fields: tuple[MappedField, ...]
    unrecognized_id: int
    message_set: bool
    excluded: tuple[UnmappedField, ...] = ()
    empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RootIds:
    raw: int
    prefix: int
    err: int
    form: int


def map_message(graph: TypeGraph, ids: ColumnIds) -> tuple[MappedMessage, RootIds]:
    """Raises DescriptorError if the ids belong to another message."""
    columns = ids.by_path()
    root = _message(graph, graph.root, (), columns)
    special = RootIds(
        raw=_id(columns, (names.RAW_STEP,), graph.root),
        prefix=_id(columns, (names.PREFIX_STEP,), graph.root),
        err=_id(columns, (names.ERR_STEP,), graph.root),
        form=_id(columns, (names.FORM_STEP,), graph.root),
    )
    return root, special


def _id(columns: Mapping[Path, ColumnId], path: Path, message: str) -> int:
    try:
        return columns[path].field_id
    except KeyError:
        raise DescriptorError("the ids given lack a column of the message", path=path, message=message) from None


def _message(graph: TypeGraph, name: str, path: Path, columns: Mapping[Path, ColumnId]) -> MappedMessage:
    kind = graph.types[name]
    return MappedMessage(
        full_name=name,
        fields=tuple(
            _field(graph, field, (*path, field.number), columns)
            for field in kind.fields
            if (*path, field.number) in columns
        ),
        unrecognized_id=_id(columns, (*path, names.UNRECOGNIZED_STEP), name),
        message_set=kind.message_set,
        excluded=tuple(
            UnmappedField(
                number=field.number,
                kind=field.kind,
                cardinality=field.cardinality,
                packed=field.packed,
                oneof=field.oneof,
            )
            for field in kind.excluded
        ),
        empty=kind.empty,
    )


def _field(graph: TypeGraph, field: FieldType, path: Path, columns: Mapping[Path, ColumnId]) -> MappedField:
    key = value = None
    if field.cardinality is Cardinality.MAP:
        assert field.key is not None
        assert field.value is not None
        key = _field(graph, field.key, (*path, names.MAP_KEY_STEP), columns)
        value = _field(graph, field.value, (*path, names.MAP_VALUE_STEP), columns)
    repeated = field.cardinality is Cardinality.REPEATED
    inner = (*path, names.ELEMENT_STEP) if repeated else path
    element_id = _id(columns, inner, graph.root) if repeated else None
    cut = field.message is not None and columns[inner].cut
    expanded = field.message is not None and not cut
    return MappedField(
        number=field.number,
        name=columns[path].name if path in columns else field.name,
        source_name=field.name,
        kind=field.kind,
        cardinality=field.cardinality,
        explicit_presence=field.explicit_presence,
        packed=field.packed,
        validate_utf8=field.validate_utf8,
        required=field.required,
        oneof=field.oneof,
        enum=field.enum,
        message=_message(graph, field.message, inner, columns) if expanded and field.message is not None else None,
        key=key,
        value=value,
        field_id=_id(columns, path, graph.root),
        element_id=element_id,
        unrecognized_id=_id(columns, (*inner, names.UNRECOGNIZED_STEP), graph.root) if cut else None,
        native=field.native,
        decimal=field.decimal,
        nanos=_nanos(graph, field, path, columns) if field.nanos else None,
    )


def _nanos(graph: TypeGraph, field: FieldType, path: Path, columns: Mapping[Path, ColumnId]) -> NanosColumn:
    own = (*path[:-1], nanos_step(field.number))
    is_list = field.cardinality is not Cardinality.SINGULAR
    return NanosColumn(
        name=columns[own].name if own in columns else field.name,
        field_id=_id(columns, own, graph.root),
        element_id=_id(columns, (*own, names.ELEMENT_STEP), graph.root) if is_list else None,
    )
