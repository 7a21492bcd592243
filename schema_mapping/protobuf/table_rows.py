"""Rows of the kernel's tables.

Slots count from zero in their space; presence bits come before them in the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from schema_mapping.protobuf.kernel import tables

NONE = -1
NO_TAG = 0xFFFF_FFFF
WORD_BITS = 64
DENSE_SLACK = 64
DENSE_SPREAD = 4
LENT = tables.NODE_FLAGS["MESSAGE_SET"] | tables.NODE_FLAGS["EMPTY"]

Array = npt.NDArray[Any]


@dataclass(slots=True, kw_only=True)
class SpaceRow:
    parent: int = NONE
    count_slot: int = NONE
    slots: int = 0
    bits: int = 0

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def bit(self) -> int:
        self.bits += 1
        return self.bits - 1

    @property
    def head(self) -> int:
        return -(-self.bits // WORD_BITS)


@dataclass(slots=True, kw_only=True)
class FieldRow:
    """`home` is the message's row space, `space` its list's. `late` is 0, or the oneof's index plus 1."""

    number: int
    op: int
    home: int = NONE
    tag: int = NO_TAG
    match: int = NO_TAG
    tag_size: int = 0
    flags: int = 0
    slot: int = NONE
    presence: int = NONE
    oneof: int = NONE
    owner: int = NONE
    node: int = NONE
    space: int = NONE
    enumeration: int = NONE
    late: int = 0


@dataclass(slots=True, kw_only=True)
class NodeRow:
    """A node without fields may use the fields of `like`."""

    home: int = NONE
    first: int = 0
    count: int = 0
    unknown: int = NONE
    flags: int = 0
    has_lists: bool = False
    like: int | None = None


@dataclass(slots=True, kw_only=True)
class OutputRow:
    """`slot` is a presence bit for BITS. It is empty in rows without the bit `gate`."""

    kind: int
    space: int
    slot: int
    gate: int = NONE
    extra: int = 0


@dataclass(slots=True, kw_only=True)
class MapRow:
    space: int
    slot: int
    as_bytes: bool


@dataclass(slots=True, kw_only=True)
class NativeRow:
    """`kind` is its node's flag; `presence` and `fits` are bits.

    `keeps_nanos`: a column has the nanoseconds that its microseconds don't have.
    """

    space: int
    kind: int
    slot: int = NONE
    nanos: int = NONE
    unknown: int = NONE
    presence: int = NONE
    fits: int = NONE
    keeps_nanos: bool = False


NO_FIELD = FieldRow(number=0, op=tables.OPS["NONE"])

FIELD = np.dtype(
    [("tag", "u4"), ("match", "u4"), ("op", "u1"), ("flags", "u1"), ("tag_size", "u1"), ("spare", "u1")]
    + [(name, "i4") for name in ("slot", "presence", "oneof", "owner", "node", "space", "enumeration")]
)
NODE = np.dtype([(n, "i4") for n in ("first", "count", "lookup", "dense", "unknown", "flags", "has_lists")])
SPACE = np.dtype([(n, "i4") for n in ("stride", "parent", "count_slot", "head")])
OUTPUT = np.dtype([(n, "i4") for n in ("kind", "space", "slot", "extra", "gate")])
NATIVE = np.dtype([(n, "i4") for n in ("space", "kind", "slot", "nanos", "unknown", "presence", "fits", "keeps_nanos")])
MAP = np.dtype([(n, "i4") for n in ("space", "slot", "as_bytes")])


def field_arrays(
    fields: Sequence[FieldRow], nodes: Sequence[NodeRow], spaces: Sequence[SpaceRow]
) -> Mapping[str, Array]:
    lookup: list[int] = []
    rows = []
    for node in nodes:
        source = node if node.like is None else nodes[node.like]
        numbers = [field.number for field in fields[source.first : source.first + source.count]]
        dense = _dense_size(numbers)
        unknown = _placed(node.unknown, node.home, spaces)
        flags = node.flags | source.flags & LENT
        rows.append((source.first, source.count, len(lookup), dense, unknown, flags, node.has_lists))
        part = [0] * dense
        for index, number in enumerate(numbers):
            if number < dense:
                part[number] = source.first + index
        lookup.extend(part)
    return {
        "fields": np.array([_field(field, spaces) for field in fields], dtype=FIELD),
        "numbers": np.array([field.number for field in fields], dtype=np.uint32),
        "nodes": np.array(rows, dtype=NODE),
        "lookup": np.array(lookup, dtype=np.int32),
        "spaces": np.array(
            [(s.head + s.slots, s.parent, _placed(s.count_slot, s.parent, spaces), s.head) for s in spaces], dtype=SPACE
        ),
    }


def output_arrays(
    outputs: Sequence[OutputRow], maps: Sequence[MapRow], spaces: Sequence[SpaceRow]
) -> Mapping[str, Array]:
    bits = tables.OUTPUTS["BITS"]
    slots = [row.slot if row.kind == bits else _placed(row.slot, row.space, spaces) for row in outputs]
    placed = [(row.kind, row.space, slot, row.extra, row.gate) for row, slot in zip(outputs, slots, strict=True)]
    keys = [(row.space, _placed(row.slot, row.space, spaces), row.as_bytes) for row in maps]
    return {"outputs": np.array(placed, dtype=OUTPUT), "maps": np.array(keys, dtype=MAP)}


def native_array(natives: Sequence[NativeRow], spaces: Sequence[SpaceRow]) -> Array:
    slots = ("slot", "nanos", "unknown")
    rows = [
        (
            row.space,
            row.kind,
            *(_placed(getattr(row, name), row.space, spaces) for name in slots),
            row.presence,
            row.fits,
            row.keeps_nanos,
        )
        for row in natives
    ]
    return np.array(rows, dtype=NATIVE)


def _placed(slot: int, space: int, spaces: Sequence[SpaceRow]) -> int:
    return NONE if slot == NONE else slot + spaces[space].head


def _field(row: FieldRow, spaces: Sequence[SpaceRow]) -> tuple[int, ...]:
    slot = _placed(row.slot, row.home, spaces)
    oneof = _placed(row.oneof, row.home, spaces)
    head = (row.tag, row.match, row.op, row.flags, row.tag_size, 0)
    return (*head, slot, row.presence, oneof, row.owner, row.node, row.space, row.enumeration)


def _dense_size(numbers: Sequence[int]) -> int:
    # Number 0, which no field has, is looked up too.
    size = 1
    for index, number in enumerate(numbers):
        if number < DENSE_SPREAD * (index + 1) + DENSE_SLACK:
            size = number + 1
    return size
