"""Adds envelopes on replay to messages that came without one, if the topic's settings say `coerce`.

Such a message is known by its row: it was decoded, `__prefix__` is null, and no header has the schema's id. The table
and its digests never hold the added bytes.
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
"""The columns that show whether a row's key or value came without an envelope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coercion:
    """Whether the keys and values of a topic get an envelope on replay if they came without one."""

    key: bool = False
    value: bool = False

    @classmethod
    def of(cls, config: TopicConfig) -> Coercion:
        """Read it from a topic's settings."""
        return cls(key=config.key.gets_envelopes, value=config.value.gets_envelopes)


def with_envelopes(
    values: pa.BinaryArray, rows: pa.StructArray, envelope: bytes, in_header: npt.NDArray[np.bool_]
) -> pa.BinaryArray:
    """Put `envelope` before the values that came without one, as their rows show.

    `rows` are structs that have the columns WITNESSES. `in_header` are the records with a schema id in their headers:
    a consumer would read an envelope there as the message's bytes.
    """
    prefix, error = (pc.struct_field(rows, name) for name in WITNESSES)
    bare = pc.and_(pc.and_(rows.is_valid(), prefix.is_null()), error.is_null())
    if in_header.any():
        bare = pc.and_(bare, pa.array(~in_header))
    if not pc.any(bare).as_py():
        return values
    first, nothing = (pa.scalar(each, values.type) for each in (envelope, b""))
    return pc.if_else(bare, pc.binary_join_element_wise(first, values, nothing), values)
