"""The registry's envelope before a message: magic byte 0, schema id (4 bytes, big-endian), message indexes.

Indexes are zigzag varints: how many, then each; a single 0 stands for the first message. Envelopes are read over whole
columns: Python looks at each distinct envelope once, numpy finds the values that begin with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.schemas.registered import Indexes
from archiver.schemas.schema_ids import SchemaIds
from archiver.schemas.value_heads import Numbers, ValueHeads

_Verdict: TypeAlias = tuple[Numbers, int, str | None]

HEAD: Final = 5
FIRST_MESSAGE: Final = (0,)
LONGEST_VARINT: Final = 5
MOST_INDEXES: Final = 100
LONGEST_ENVELOPE: Final = HEAD + LONGEST_VARINT * (MOST_INDEXES + 1)
COMMON_ENVELOPES: Final = 16

BAD_ENVELOPE: Final = "bad_envelope@0"
UNKNOWN_SCHEMA_ID: Final = "unknown_schema_id@1"
OTHER_MESSAGE: Final = "other_message@5"


@dataclass(frozen=True, slots=True)
class Envelopes:
    """For each value: the length of its envelope (0 where refused or null), and the error of those refused."""

    lengths: npt.NDArray[np.int32]
    errors: dict[str, npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeReader:
    """Reads the envelopes of a column whose values are `message`s."""

    message: str
    ids: SchemaIds

    def read(self, values: pa.BinaryArray) -> Envelopes:
        """Where each value's message begins. Raises what `ids` raises, never for what the bytes are."""
        column = ValueHeads.of(values)
        lengths = np.zeros(len(values), dtype=np.int32)
        codes = np.zeros(len(values), dtype=np.int8)
        valid = np.asarray(values.is_valid())
        whole = valid & (column.sizes > HEAD) & (column.heads[:, 0] == 0)
        codes[valid & ~whole] = _CODES.index(BAD_ENVELOPE)
        for rows, schema_id in _by_id(np.flatnonzero(whole), column.numbers_at(1)):
            for same, length, error in self._of_one_id(rows, schema_id, column):
                if error is None:
                    lengths[same] = length
                else:
                    codes[same] = _CODES.index(error)
        return Envelopes(lengths, {code: codes == at for at, code in enumerate(_CODES) if at and (codes == at).any()})

    def _of_one_id(self, rows: Numbers, schema_id: int, column: ValueHeads) -> Iterator[_Verdict]:
        """Verdicts over all the rows: on those of the first message together, then on the others."""
        is_first = column.heads[rows, HEAD] == 0
        length, error = self._judge(schema_id, (FIRST_MESSAGE, HEAD + 1))
        if error == UNKNOWN_SCHEMA_ID:
            yield rows, 0, error
            return
        if is_first.any():
            yield rows[is_first], length, error
            rows = rows[~is_first]
        for _ in range(COMMON_ENVELOPES):
            if not rows.size:
                return
            head = column.head(int(rows[0]), LONGEST_ENVELOPE)
            length, error = self._judge(schema_id, parse_indexes(head))
            # A damaged envelope says nothing of values that begin like it and go on otherwise.
            alike = column.begin_with(head[:length], rows) if length else rows == rows[0]
            yield rows[alike], length, error
            rows = rows[~alike]
        yield from self._one_by_one(rows, schema_id, column)

    def _one_by_one(self, rows: Numbers, schema_id: int, column: ValueHeads) -> Iterator[_Verdict]:
        # Few envelopes are common to many values; what is left after those is looked at alone.
        found: defaultdict[tuple[int, str | None], list[int]] = defaultdict(list)
        for row in rows.tolist():
            found[self._judge(schema_id, parse_indexes(column.head(row, LONGEST_ENVELOPE)))].append(row)
        for (length, error), same in found.items():
            yield np.array(same, dtype=np.int64), length, error

    def _judge(self, schema_id: int, parsed: tuple[Indexes, int] | None) -> tuple[int, str | None]:
        if parsed is None:
            return 0, BAD_ENVELOPE
        indexes, length = parsed
        names = self.ids.messages(schema_id, indexes)
        if names is None:
            return length, UNKNOWN_SCHEMA_ID
        return length, None if self.message in names else OTHER_MESSAGE


_CODES: Final = ("", BAD_ENVELOPE, UNKNOWN_SCHEMA_ID, OTHER_MESSAGE)


def parse_indexes(value: bytes) -> tuple[Indexes, int] | None:
    """The message indexes of a value's envelope and the envelope's length; None where they are cut short or absurd."""
    count, at = _varint(value, HEAD)
    if count is None or not 0 <= count <= MOST_INDEXES:
        return None
    if count == 0:
        return FIRST_MESSAGE, at
    indexes = []
    for _ in range(count):
        index, at = _varint(value, at)
        if index is None or index < 0:
            return None
        indexes.append(index)
    return tuple(indexes), at


def _varint(value: bytes, at: int) -> tuple[int | None, int]:
    number = 0
    for place, byte in enumerate(value[at : at + LONGEST_VARINT]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says there is more
            return number >> 1 ^ -(number & 1), at + place + 1
    return None, at


def _by_id(rows: Numbers, ids: npt.NDArray[np.uint32]) -> Iterator[tuple[Numbers, int]]:
    """The rows of each schema id."""
    if not rows.size:
        return
    own = ids[rows]
    if (own == own[0]).all():
        yield rows, int(own[0])
        return
    order = np.argsort(own, kind="stable")
    distinct, first = np.unique(own[order], return_index=True)
    for schema_id, part in zip(distinct, np.split(order, first[1:]), strict=True):
        yield rows[part], int(schema_id)
