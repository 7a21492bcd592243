"""Builds the mapping tree from resolved message types and the ids given to their columns."""

from __future__ import annotations

from collections.abc import Mapping

from schema_mapping import names
from schema_mapping.columns.ids import AssignedColumn, IdAssignment
from schema_mapping.columns.paths import Path
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.type_graph import FieldType, TypeGraph
from schema_mapping.protobuf.types import Cardinality, ExcludedField, MappedField, MappedMessage, RootIds


def build_tree(graph: TypeGraph, ids: IdAssignment) -> tuple[MappedMessage, RootIds]:
    """The tree of a key or value. Raises DescriptorError when the ids belong to another message."""
    columns = ids.by_path()
    root = _message(graph, graph.root, (), columns)
    special = RootIds(
        raw=_id(columns, (names.RAW_STEP,), graph.root),
        prefix=_id(columns, (names.PREFIX_STEP,), graph.root),
        err=_id(columns, (names.ERR_STEP,), graph.root),
        form=_id(columns, (names.FORM_STEP,), graph.root),
    )
    return root, special


def _id(columns: Mapping[Path, AssignedColumn], path: Path, message: str) -> int:
    try:
        return columns[path].field_id
    except KeyError:
        raise DescriptorError("the ids given lack a column of the message", path=path, message=message) from None


def _message(graph: TypeGraph, name: str, path: Path, columns: Mapping[Path, AssignedColumn]) -> MappedMessage:
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
            ExcludedField(
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


def _field(graph: TypeGraph, field: FieldType, path: Path, columns: Mapping[Path, AssignedColumn]) -> MappedField:
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
    )
