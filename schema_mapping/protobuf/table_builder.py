"""Lays out a message as row spaces, slots, presence bits and columns.

The root and every list and map have a row space. Singular fields have a presence bit, unless always present.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from schema_mapping.protobuf.check_nodes import CheckNodes
from schema_mapping.protobuf.enum_tables import EnumTables
from schema_mapping.protobuf.field_codes import canonical_tag, op_code, tag_size
from schema_mapping.protobuf.field_kinds import Cardinality, WireKind
from schema_mapping.protobuf.kernel.tables import FIELD_FLAGS, NODE_FLAGS, OPS, OUTPUTS, Tables
from schema_mapping.protobuf.layout import Layout, LeafLayout, ListLayout, MapLayout, StructLayout
from schema_mapping.protobuf.mapped_messages import MappedField, MappedMessage, UnmappedField
from schema_mapping.protobuf.native_nodes import NativeNodes, leaf_output
from schema_mapping.protobuf.oneofs_last import ONEOFS_LAST, form_of, late_arrays
from schema_mapping.protobuf.table_rows import (
    NO_FIELD,
    NO_TAG,
    NONE,
    FieldRow,
    MapRow,
    NodeRow,
    OutputRow,
    SpaceRow,
    field_arrays,
    native_array,
    output_arrays,
)
from schema_mapping.protobuf.type_graph import TypeGraph

ROOT_SPACE = 0
MESSAGES = frozenset({WireKind.MESSAGE, WireKind.GROUP})
BYTES_OPS = frozenset({OPS["STRING"], OPS["TEXT"], OPS["BYTES"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnPlace:
    space: int
    validity: int | None
    message: str


class TableBuilder:
    """Without a type graph, cut messages are checked as empty."""

    def __init__(self, graph: TypeGraph | None) -> None:
        self._fields: list[FieldRow] = [NO_FIELD]
        self._nodes: list[NodeRow] = []
        self._spaces = [SpaceRow()]
        self._outputs: list[OutputRow] = []
        self._maps: list[MapRow] = []
        self._enums = EnumTables()
        self._checks = CheckNodes(graph, self._fields, self._nodes)
        self._natives = NativeNodes(self._fields, self._nodes, self._spaces)
        self._special: dict[str, int] = {}

    def add_root(self, root: MappedMessage, arrow_type: pa.StructType) -> StructLayout:
        """The root's node is the first."""
        space = self._spaces[ROOT_SPACE]
        self._special = {f"{name}_bit": space.bit() for name in ("row", "ok", "raw", "err", "prefix", "form")}
        present = self._validity(ROOT_SPACE, self._special["row_bit"])
        validity = self._validity(ROOT_SPACE, self._special["ok_bit"])
        root_place = _ColumnPlace(space=ROOT_SPACE, validity=validity, message=root.full_name)
        _, children = self._message(root, arrow_type, root_place)
        specials = [self._add_special(name, arrow_type) for name in ("prefix", "raw", "err", "form")]
        return StructLayout(
            type=arrow_type,
            space=ROOT_SPACE,
            validity=present,
            children=(*children[:-1], *specials, children[-1]),
        )

    def tables(self, *, keep_raw: bool) -> Tables:
        self._checks.fill()
        form = form_of(self._fields)
        arrays = field_arrays(self._fields, self._nodes, self._spaces)
        arrays = {
            **arrays,
            **late_arrays(arrays, self._fields, self._nodes),
            **output_arrays(self._outputs, self._maps, self._spaces),
            "natives": native_array(self._natives.rows, self._spaces),
            **self._enums.arrays(form.encode()),
        }
        head = self._spaces[ROOT_SPACE].head
        root = {name: at + head if name.endswith("_slot") else at for name, at in self._special.items()}
        root |= {"form_size": len(form), "columns_form_size": len(ONEOFS_LAST)}
        return Tables(arrays, root=root, keep_raw=keep_raw)

    def _add_special(self, name: str, arrow_type: pa.StructType) -> LeafLayout:
        slot = self._spaces[ROOT_SPACE].slot()
        self._special[f"{name}_slot"] = slot
        return LeafLayout(
            type=arrow_type.field(f"__{name}__").type,
            space=ROOT_SPACE,
            output=self._output("BYTES", ROOT_SPACE, slot, gate=self._special[f"{name}_bit"]),
            validity=self._validity(ROOT_SPACE, self._special[f"{name}_bit"]),
        )

    def _output(self, kind: str, space: int, slot: int, *, gate: int = NONE, extra: int = 0) -> int:
        self._outputs.append(OutputRow(kind=OUTPUTS[kind], space=space, slot=slot, gate=gate, extra=extra))
        return len(self._outputs) - 1

    def _validity(self, space: int, bit: int) -> int:
        return self._output("BITS", space, bit, gate=bit)

    def _gate(self, place: _ColumnPlace) -> int:
        # The columns of a message are empty in rows without the message.
        return NONE if place.validity is None else self._outputs[place.validity].slot

    def _message(
        self, message: MappedMessage, arrow_type: pa.StructType, place: _ColumnPlace
    ) -> tuple[int, tuple[Layout, ...]]:
        place = replace(place, message=message.full_name)
        columns = {field.number: field for field in message.fields}
        excluded = {field.number: field for field in message.excluded}
        numbers = sorted((*columns, *excluded))
        node = self._new_node(place.space, count=len(numbers))
        row = self._nodes[node]
        row.flags = NODE_FLAGS["MESSAGE_SET"] if message.message_set else 0
        row.flags |= NODE_FLAGS["ASIDE"] if message.excluded else 0
        row.flags |= NODE_FLAGS["EMPTY"] if message.empty else 0
        row.unknown = self._spaces[place.space].slot()
        oneofs = {
            index: self._spaces[place.space].slot()
            for index in dict.fromkeys(field.oneof for field in message.fields)
            if index is not None
        }
        layouts: list[Layout] = []
        types = iter(column.type for column in arrow_type)
        for at, number in enumerate(numbers, start=row.first):
            if number in excluded:
                self._fields[at] = self._aside(excluded[number], place.space, node)
                continue
            field = columns[number]
            result = FieldRow(number=number, op=_op(field), home=place.space, owner=node)
            self._fields[at] = result
            result.oneof = -1 if field.oneof is None else oneofs[field.oneof]
            result.late = 0 if field.oneof is None else field.oneof + 1
            layouts.append(self._field(field, result, next(types), place))
            if field.nanos is not None:
                layouts.append(self._nanos(result, layouts[-1], next(types), place))
        row.has_lists = any(self._hangs_rows(field) for field in self._fields[row.first : row.first + row.count])
        layouts.append(self._unknown_leaf(row.unknown, place, arrow_type.field(arrow_type.num_fields - 1).type))
        return node, tuple(layouts)

    def _aside(self, field: UnmappedField, space: int, owner: int) -> FieldRow:
        # Its presence bit is never set, so that there is nothing to clear.
        row = FieldRow(number=field.number, op=OPS["ASIDE"], home=space, owner=owner)
        row.presence = self._spaces[space].bit()
        row.tag = canonical_tag(field)
        row.late = 0 if field.oneof is None else field.oneof + 1
        return row

    def _hangs_rows(self, field: FieldRow) -> bool:
        return bool(field.flags & FIELD_FLAGS["LIST"]) or (field.node >= 0 and self._nodes[field.node].has_lists)

    def _new_node(self, space: int, *, count: int) -> int:
        self._nodes.append(NodeRow(home=space, first=len(self._fields), count=count))
        self._fields.extend([NO_FIELD] * count)
        return len(self._nodes) - 1

    def _unknown_leaf(self, slot: int, place: _ColumnPlace, arrow_type: pa.DataType) -> LeafLayout:
        output = self._output("UNKNOWN", place.space, slot, gate=self._gate(place))
        return LeafLayout(type=arrow_type, space=place.space, output=output, validity=output)

    def _field(self, field: MappedField, row: FieldRow, arrow_type: pa.DataType, place: _ColumnPlace) -> Layout:
        row.flags |= _wide(field)
        row.tag = canonical_tag(field)
        row.tag_size = tag_size(row.tag)
        row.match = NO_TAG if row.op == OPS["CLOSED_ENUM"] and not field.packed else row.tag
        match field.cardinality:
            case Cardinality.SINGULAR:
                return self._singular(field, row, arrow_type, place)
            case Cardinality.REPEATED:
                return self._list(field, row, arrow_type, place)
            case Cardinality.MAP:
                return self._map(field, row, arrow_type, place)

    def _singular(self, field: MappedField, row: FieldRow, arrow_type: pa.DataType, place: _ColumnPlace) -> Layout:
        row.presence = self._spaces[place.space].bit()
        if field.explicit_presence or field.kind in MESSAGES:
            validity = self._validity(place.space, row.presence)
            own = replace(place, validity=validity)
            return self._value(field, row, arrow_type, own)
        row.flags |= FIELD_FLAGS["IMPLICIT"]
        return self._value(field, row, arrow_type, place)

    def _list(self, field: MappedField, row: FieldRow, arrow_type: pa.ListType, place: _ColumnPlace) -> ListLayout:
        row.flags |= FIELD_FLAGS["LIST"] | FIELD_FLAGS["PACKED" if field.packed else "MANY"]
        counts = self._open_space(row, place)
        element = FieldRow(number=field.number, op=row.op, home=row.space, flags=_wide(field))
        layout = self._value(field, element, arrow_type.value_type, replace(place, space=row.space, validity=None))
        row.node, row.enumeration = element.node, element.enumeration
        return ListLayout(type=arrow_type, space=place.space, validity=place.validity, counts=counts, element=layout)

    def _map(self, field: MappedField, row: FieldRow, arrow_type: pa.MapType, place: _ColumnPlace) -> MapLayout:
        assert field.key is not None
        assert field.value is not None
        row.flags |= FIELD_FLAGS["LIST"] | FIELD_FLAGS["MANY"]
        counts = self._open_space(row, place)
        row.node = self._new_node(row.space, count=2)
        entry = self._nodes[row.node]
        entry.flags = NODE_FLAGS["ENTRY"]
        entry.unknown = self._spaces[row.space].slot()
        inside = replace(place, space=row.space, validity=None)
        key, key_row = self._entry_field(field.key, entry.first, row, arrow_type.key_type, inside)
        value, value_row = self._entry_field(field.value, entry.first + 1, row, arrow_type.item_type, inside)
        entry.has_lists = self._hangs_rows(value_row)
        self._maps.append(MapRow(space=row.space, slot=key_row.slot, as_bytes=key_row.op in BYTES_OPS))
        return MapLayout(
            type=arrow_type,
            space=place.space,
            validity=place.validity,
            counts=counts,
            entries=row.space,
            key=key,
            value=value,
            index=len(self._maps) - 1,
        )

    def _entry_field(
        self, field: MappedField, at: int, row: FieldRow, arrow_type: pa.DataType, place: _ColumnPlace
    ) -> tuple[Layout, FieldRow]:
        # Canonical entries have both key and value on the wire, defaults too. The column has both in any case.
        result = FieldRow(number=field.number, op=_op(field), home=row.space, owner=row.node, flags=_wide(field))
        result.tag = canonical_tag(field)
        result.tag_size = tag_size(result.tag)
        result.match = NO_TAG if result.op == OPS["CLOSED_ENUM"] else result.tag
        result.presence = self._spaces[row.space].bit()
        self._fields[at] = result
        layout = self._value(field, result, arrow_type, place, entry_of=row)
        return layout, result

    def _open_space(self, row: FieldRow, place: _ColumnPlace) -> int:
        # Opens a row space for a field's values; the field's counts are an output column.
        row.slot = self._spaces[place.space].slot()
        row.space = len(self._spaces)
        self._spaces.append(SpaceRow(parent=place.space, count_slot=row.slot))
        return self._output("COUNTS", place.space, row.slot, gate=self._gate(place))

    def _value(
        self,
        field: MappedField,
        row: FieldRow,
        arrow_type: pa.DataType,
        place: _ColumnPlace,
        *,
        entry_of: FieldRow | None = None,
    ) -> Layout:
        if field.message is not None:
            row.node, children = self._message(field.message, arrow_type, place)
            return StructLayout(type=arrow_type, space=place.space, validity=place.validity, children=children)
        if field.native is not None:
            return self._native(field, row, arrow_type, place, entry_of)
        if field.is_cut:
            return self._cut(row, arrow_type, place, entry_of)
        row.slot = self._spaces[place.space].slot()
        if field.enum is not None:
            row.enumeration = self._enums.add(field.enum)
        if field.enum is not None and (entry_of is not None or row.flags & FIELD_FLAGS["IMPLICIT"]):
            output = self._output("ENUM", place.space, row.slot, extra=self._enums.zero(row.enumeration))
        else:
            output = self._output(leaf_output(row), place.space, row.slot, gate=row.presence)
        return LeafLayout(type=arrow_type, space=place.space, output=output, validity=place.validity)

    def _native(
        self, field: MappedField, row: FieldRow, arrow_type: pa.DataType, place: _ColumnPlace, entry_of: FieldRow | None
    ) -> LeafLayout:
        assert field.native is not None
        native = self._natives.add(
            field, row, place.space, is_singular=place.validity is not None, has_nulls=entry_of is not None
        )
        if field.native.is_json:
            source = entry_of or row
            self._nodes[row.node].like = self._checks.of_field(
                place.message, source.number, in_map=entry_of is not None
            )
        validity = place.validity
        if native.fits >= 0 and validity is not None:
            self._outputs[validity].slot = self._outputs[validity].gate = native.fits
        elif native.fits >= 0:
            validity = self._validity(place.space, native.fits)
        output = self._output(self._natives.output(row), place.space, native.slot, gate=native.presence)
        return LeafLayout(type=arrow_type, space=place.space, output=output, validity=validity)

    def _nanos(self, row: FieldRow, times: Layout, arrow_type: pa.DataType, place: _ColumnPlace) -> Layout:
        # The nanoseconds of the times that were laid out last: null when a time is, and as many as the times.
        native = self._natives.rows[-1]
        native.keeps_nanos = True
        row.flags |= FIELD_FLAGS["NANOS"]
        output = self._output("32", native.space, native.nanos, gate=native.presence)
        match times:
            case LeafLayout():
                return LeafLayout(type=arrow_type, space=native.space, output=output, validity=times.validity)
            case ListLayout() | MapLayout():
                return ListLayout(
                    type=arrow_type,
                    space=place.space,
                    validity=times.validity,
                    counts=times.counts,
                    element=LeafLayout(type=pa.int32(), space=native.space, output=output, validity=None),
                    index=times.index,
                )
            case StructLayout():
                raise AssertionError("a struct has no column of nanoseconds")

    def _cut(
        self, row: FieldRow, arrow_type: pa.StructType, place: _ColumnPlace, entry_of: FieldRow | None
    ) -> StructLayout:
        slot = self._spaces[place.space].slot()
        row.node = self._new_node(place.space, count=0)
        node = self._nodes[row.node]
        node.unknown = slot
        node.flags = NODE_FLAGS["CUT"]
        source = entry_of or row
        node.like = self._checks.of_field(place.message, source.number, in_map=entry_of is not None)
        child = self._unknown_leaf(slot, place, arrow_type.field(0).type)
        return StructLayout(type=arrow_type, space=place.space, validity=place.validity, children=(child,))


def _wide(field: MappedField) -> int:
    return FIELD_FLAGS["WIDE"] if field.decimal and field.native is None else 0


def _op(field: MappedField) -> int:
    is_map = field.cardinality is Cardinality.MAP
    return op_code(field.kind, is_map=is_map, validate_utf8=field.validate_utf8, enum=field.enum)
