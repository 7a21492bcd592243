"""Nodes that check messages kept as bytes, as upb would.

One node per type; recursive types refer to themselves.
"""

from __future__ import annotations

from schema_mapping.protobuf.field_codes import op_code
from schema_mapping.protobuf.field_kinds import Cardinality
from schema_mapping.protobuf.kernel.tables import FIELD_FLAGS, NODE_FLAGS
from schema_mapping.protobuf.table_rows import FieldRow, NodeRow
from schema_mapping.protobuf.type_graph import FieldType, TypeGraph


class CheckNodes:
    def __init__(self, graph: TypeGraph | None, fields: list[FieldRow], nodes: list[NodeRow]) -> None:
        self._graph = graph
        self._fields = fields
        self._nodes = nodes
        self._known: dict[str, int] = {}
        self._pending: list[str] = []

    def of_field(self, message: str, number: int, *, in_map: bool) -> int | None:
        if self._graph is None:
            return None
        field = next(field for field in self._graph.types[message].fields if field.number == number)
        target = field.value if in_map else field
        assert target is not None
        assert target.message is not None
        return self._of_type(target.message)

    def fill(self) -> None:
        while self._pending:
            name = self._pending.pop()
            assert self._graph is not None
            self._fill(self._known[name], self._graph.types[name].fields)

    def _of_type(self, name: str) -> int:
        if name not in self._known:
            assert self._graph is not None
            self._known[name] = len(self._nodes)
            flags = NODE_FLAGS["MESSAGE_SET"] if self._graph.types[name].message_set else 0
            flags |= NODE_FLAGS["EMPTY"] if self._graph.types[name].empty else 0
            self._nodes.append(NodeRow(flags=flags))
            self._pending.append(name)
        return self._known[name]

    def _fill(self, node: int, fields: tuple[FieldType, ...]) -> None:
        first = len(self._fields)
        self._nodes[node].first, self._nodes[node].count = first, len(fields)
        self._fields.extend(FieldRow(number=field.number, op=_op(field)) for field in fields)
        for row, field in zip(self._fields[first:], fields, strict=True):
            if field.cardinality is not Cardinality.SINGULAR:
                row.flags = FIELD_FLAGS["LIST"]
            if field.cardinality is Cardinality.MAP:
                assert field.key is not None
                assert field.value is not None
                row.node = len(self._nodes)
                self._nodes.append(NodeRow())
                self._fill(row.node, (field.key, field.value))
            elif field.message is not None:
                row.node = self._of_type(field.message)


def _op(field: FieldType) -> int:
    is_map = field.cardinality is Cardinality.MAP
    return op_code(field.kind, is_map=is_map, validate_utf8=field.validate_utf8, enum=field.enum)
