"""The kernel's nodes.

Forms name objects and members by their number in these tables: their order must never change for a mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schema_mapping.columns.outputs import NO_COLUMN, AnyOutput, ListOutput, MapOutput, ScalarOutput, StructOutput
from schema_mapping.json.json_columns import VALUE
from schema_mapping.json.kernel.tables import OPS, name_hash
from schema_mapping.json.types import ArrayType, ChoiceType, JsonMember, JsonType, MapType, ObjectType, ScalarType

_OPS: Final = {"boolean": "BOOLEAN", "int": "INT", "integer": "LONG", "number": "DOUBLE", "string": "STRING"}
_PLAIN: Final = frozenset(
    map(ord, " !#$%()*,-.0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_abcdefghijklmnopqrstuvwxyz{|}~")
)
"""Characters that no writer escapes."""


@dataclass(slots=True, kw_only=True)
class JsonNode:
    op: int
    out: int = NO_COLUMN
    first: int = 0
    count: int = 0
    space: int = 0
    extra: int = NO_COLUMN
    object: int = 0
    member: int = 0
    lookup: int = 0
    mask: int = 0

    @property
    def values(self) -> tuple[int, ...]:
        return astuple(self)


@dataclass(slots=True)
class NodeTables:
    nodes: list[JsonNode] = field(default_factory=list)
    objects: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    lookup: list[int] = field(default_factory=list)
    texts: bytearray = field(default_factory=bytearray)

    def add_root(self, kind: JsonType, root: StructOutput, unknown: int) -> int:
        """`unknown` is the column of the root's unknown members."""
        if not isinstance(kind, ObjectType):
            return self._block([self._of(kind, root.fields[VALUE])])
        at = self._block([JsonNode(op=OPS["OBJECT"])])
        self._fill(at, kind.members, root, unknown)
        self.nodes[at].out = NO_COLUMN
        return at

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        node = np.dtype([(name, np.int32) for name in JsonNode.__annotations__])
        return {
            "nodes": np.array([entry.values for entry in self.nodes], dtype=node),
            "objects": np.array(self.objects, dtype=np.int32),
            "names": np.array(self.names, dtype=np.uint64),
            "lookup": np.array(self.lookup or [0], dtype=np.int32),
            "texts": np.frombuffer(bytes(self.texts) + b"\0", dtype=np.uint8),
        }

    def _block(self, rows: Sequence[JsonNode]) -> int:
        self.nodes.extend(rows)
        return len(self.nodes) - len(rows)

    def _of(self, kind: JsonType, output: AnyOutput) -> JsonNode:  # noqa: PLR0911 - a table of types
        match kind, output:
            case _, StructOutput(whole=whole) if whole is not None:
                return JsonNode(op=OPS["CUT"], out=whole, extra=output.output)
            case ScalarType(name), ScalarOutput():
                return JsonNode(op=OPS[_OPS[name]], out=output.output)
            case ArrayType(items), ListOutput():
                first = self._block([JsonNode(op=OPS["TEXT"])])
                self.nodes[first] = self._of(items, output.element)
                return JsonNode(op=OPS["ARRAY"], out=output.output, first=first, count=1, space=output.space)
            case MapType(values), MapOutput():
                first = self._block([JsonNode(op=OPS["TEXT"])])
                self.nodes[first] = self._of(values, output.value)
                return JsonNode(
                    op=OPS["MAP"],
                    out=output.output,
                    first=first,
                    count=1,
                    space=output.space,
                    extra=output.key.output,
                )
            case ObjectType(members), StructOutput():
                at = len(self.nodes)
                self.nodes.append(JsonNode(op=OPS["OBJECT"]))
                unknown = output.children[-1].output
                self._fill(at, members, output, unknown)
                return self.nodes[at]
            case ChoiceType(branches), StructOutput():
                first = self._block([JsonNode(op=OPS["TEXT"])] * len(branches))
                for index, (branch, child) in enumerate(zip(branches, output.fields.values(), strict=True)):
                    self.nodes[first + index] = self._of(branch, child)
                return JsonNode(op=OPS["CHOICE"], out=output.output, first=first, count=len(branches))
            case _, ScalarOutput():
                return JsonNode(op=OPS["TEXT"], out=output.output)
            case _:
                raise AssertionError(f"{kind} has no column {output}")

    def _fill(self, at: int, members: Sequence[JsonMember], output: StructOutput, unknown: int) -> None:
        node = self.nodes[at]
        node.out, node.extra, node.count = output.output, unknown, len(members)
        node.object, node.member = len(self.objects), len(self.names)
        self.objects.append(at)
        self._add_names(node, members)
        node.first = self._block([JsonNode(op=OPS["TEXT"])] * len(members))
        for index, member in enumerate(members):
            self.nodes[node.first + index] = self._of(member.type, output.fields[member.name])

    def _add_names(self, node: JsonNode, members: Sequence[JsonMember]) -> None:
        size = 1 << (2 * len(members)).bit_length()
        table = [0] * size
        for member in members:
            text = member.name.encode()
            at = name_hash(text) & (size - 1)
            while table[at]:
                at = (at + 1) & (size - 1)
            self.names.append(len(self.texts) << 32 | len(text) << 1 | (set(text) <= _PLAIN))
            table[at] = len(self.names)
            self.texts += b'"' + text + b'"'
        node.lookup, node.mask = len(self.lookup), size - 1
        self.lookup += table
