"""Adds envelopes on replay to messages without one (`coerce`).

Not to messages with raw bytes or a schema id in a header. Table and digests never have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.config.model import TopicConfig
from schema_mapping import names

WITNESSES: Final = (names.PREFIX, names.ERR)
"""The columns that show whether a row's key or value had no envelope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coercion:
    key: bool = False
    value: bool = False

    @classmethod
    def of_topic(cls, config: TopicConfig) -> Coercion:
        return cls(key=config.key.gets_envelopes, value=config.value.gets_envelopes)


def with_envelopes(
    values: pa.BinaryArray, rows: pa.StructArray, envelope: bytes, in_header: npt.NDArray[np.bool_]
) -> pa.BinaryArray:
    """Add `envelope` to values that had none.

    Not to records `in_header`: consumers would take it for the message.
    """
    prefix, error = (pc.struct_field(rows, name) for name in WITNESSES)
    bare = pc.and_(pc.and_(rows.is_valid(), prefix.is_null()), error.is_null())
    if in_header.any():
        bare = pc.and_(bare, pa.array(~in_header))
    if not pc.any(bare).as_py():
        return values
    first, nothing = (pa.scalar(text, values.type) for text in (envelope, b""))
    return pc.if_else(bare, pc.binary_join_element_wise(first, values, nothing), values)
