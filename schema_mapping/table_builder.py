"""Lays a mapping tree out as tables: row spaces, their slots and presence bits, field lookups, output columns.

A row space belongs to the root and to every repeated field and map. Singular messages share their parent's rows. Slots
are numbered after the presence bits, whose count is known only at the end: till then they count from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from schema_mapping.enum_tables import EnumTables
from schema_mapping.kernel import tables as kernel
from schema_mapping.layout import Layout, LeafLayout, ListLayout, MapLayout, StructLayout
from schema_mapping.type_graph import FieldType, TypeGraph
from schema_mapping.types import Cardinality, MappedField, MappedMessage, WireKind

NONE = -1
NO_TAG = 0xFFFF_FFFF
WORD = 64
BYTES_OPS = frozenset({kernel.OPS["STRING"], kernel.OPS["TEXT"], kernel.OPS["BYTES"]})


@dataclass(slots=True, kw_only=True)
class _Space:
    parent: int
    count_slot: int
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
        return -(-self.bits // WORD)


@dataclass(slots=True, kw_only=True)
class _Place:
    """Where the columns of a message lie: its space, and the bit that says whether it is there (NONE: always)."""

    space: int
    bit: int
