"""Well-known types with one column.

The kernel computes values after parsing a chunk; JSON is kept whole as bytes.
"""

from __future__ import annotations

from typing import Final

from schema_mapping.protobuf.field_codes import LEAF_OUTPUTS, WIRE_TYPES, op_code
from schema_mapping.protobuf.field_kinds import WellKnown, WireKind
from schema_mapping.protobuf.kernel.tables import FIELD_FLAGS, NODE_FLAGS
from schema_mapping.protobuf.mapped_messages import MappedField
from schema_mapping.protobuf.table_rows import FieldRow, NativeRow, NodeRow, SpaceRow

VARINT: Final = 0
FLAGS: Final = {
    WellKnown.TIMESTAMP: NODE_FLAGS["TIMESTAMP"],
    WellKnown.DURATION: NODE_FLAGS["DURATION"],
    WellKnown.STRUCT: NODE_FLAGS["CUT"] | NODE_FLAGS["STRUCT"],
    WellKnown.VALUE: NODE_FLAGS["CUT"] | NODE_FLAGS["VALUE"],
    WellKnown.LIST_VALUE: NODE_FLAGS["CUT"] | NODE_FLAGS["LIST_VALUE"],
}


def leaf_output(row: FieldRow) -> str:
    return "DECIMAL" if row.flags & FIELD_FLAGS["WIDE"] else LEAF_OUTPUTS[row.op]


class NativeNodes:
    def __init__(self, fields: list[FieldRow], nodes: list[NodeRow], spaces: list[SpaceRow]) -> None:
        self._fields = fields
        self._nodes = nodes
        self._spaces = spaces
        self.rows: list[NativeRow] = []

    def add(self, field: MappedField, row: FieldRow, space: int, *, is_singular: bool, has_nulls: bool) -> NativeRow:
        """A column without nulls holds the nearest time if one doesn't fit."""
        assert field.native is not None
        flags = FLAGS.get(field.native, NODE_FLAGS["WRAPPER"])
        parts = self._parts(field)
        row.node = len(self._nodes)
        node = NodeRow(home=space, first=len(self._fields), count=len(parts), unknown=self._spaces[space].slot())
        node.flags = flags
        self._nodes.append(node)
        for part in parts:
            part.home, part.owner, part.slot = space, row.node, self._spaces[space].slot()
            part.presence = self._spaces[space].bit()
        self._fields.extend(parts)
        native = NativeRow(space=space, kind=flags & ~NODE_FLAGS["CUT"], slot=node.unknown, unknown=node.unknown)
        if parts:
            native.slot, native.nanos = parts[0].slot, parts[-1].slot
        if is_singular:
            native.presence = row.presence
        if field.native in (WellKnown.TIMESTAMP, WellKnown.DURATION) and (is_singular or has_nulls):
            native.fits = self._spaces[space].bit()
        self.rows.append(native)
        return native

    def output(self, row: FieldRow) -> str:
        node = self._nodes[row.node]
        return leaf_output(self._fields[node.first]) if node.count else "BYTES"

    def _parts(self, field: MappedField) -> tuple[FieldRow, ...]:
        match field.native:
            case WellKnown.TIMESTAMP | WellKnown.DURATION:
                return _part(1, WireKind.INT64), _part(2, WireKind.INT32)
            case WellKnown() as native if native.wrapped is not None:
                return (_part(1, native.wrapped, flags=FIELD_FLAGS["WIDE"] if field.decimal else 0),)
            case _:
                return ()


def _part(number: int, kind: WireKind, *, flags: int = 0) -> FieldRow:
    tag = number << 3 | WIRE_TYPES.get(kind, VARINT)
    return FieldRow(
        number=number,
        op=op_code(kind, is_map=False, validate_utf8=True, enum=None),
        tag=tag,
        match=tag,
        tag_size=1,
        flags=flags | FIELD_FLAGS["IMPLICIT"],
    )
