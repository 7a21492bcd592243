"""The registry's envelope before a message: magic byte 0, schema id (4 bytes, big-endian), message indexes.

Indexes are zigzag varints: how many, then each; a single 0 stands for the first message. Envelopes are read over whole
columns: Python looks at each distinct envelope once, numpy finds the values that begin with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.schemas.registered import Indexes
from archiver.schemas.schema_ids import SchemaIds

Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int64]

HEAD: Final = 5
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
        starts, sizes, data = _column(values)
        lengths = np.zeros(len(values), dtype=np.int32)
        codes = np.zeros(len(values), dtype=np.int8)
        left = np.flatnonzero(np.asarray(values.is_valid()))
        whole = (sizes[left] > HEAD) & (_byte(data, starts[left], sizes[left]) == 0)
        codes[left[~whole]] = _CODES.index(BAD_ENVELOPE)
        left = left[whole]
        for rows, first in _by_head(left, starts, data):
            for same, length, error in self._of_one_id(rows, first, starts, sizes, data):
                if error is None:
                    lengths[same] = length
                else:
                    codes[same] = _CODES.index(error)
        return Envelopes(lengths, {code: codes == at for at, code in enumerate(_CODES) if at and (codes == at).any()})

    def _of_one_id(
        self, rows: Numbers, schema_id: int, starts: Numbers, sizes: Numbers, data: Bytes
    ) -> Iterator[tuple[Numbers, int, str | None]]:
        for turn in range(len(rows)):
            if not rows.size:
                return
            row = rows[0]
            head = data[starts[row] : starts[row] + min(int(sizes[row]), LONGEST_ENVELOPE)]
            length, error = self._judge(schema_id, parse_indexes(head.tobytes()))
            if error == UNKNOWN_SCHEMA_ID:
                yield rows, length, error
                return
            # Few envelopes are common to many values; what is left after those is looked at one by one.
            alike = np.zeros(len(rows), dtype=bool)
            alike[0] = True
            if turn < COMMON_ENVELOPES and error != BAD_ENVELOPE:
                alike = _begin_with(head[:length], starts[rows], sizes[rows], data)
            yield rows[alike], length, error
            rows = rows[~alike] if turn < COMMON_ENVELOPES else rows[1:]

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
        return (0,), at
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


def _column(values: pa.BinaryArray) -> tuple[Numbers, Numbers, Bytes]:
    """Where values start, how long they are, and the bytes they lie in."""
    kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    _, offsets, data = values.buffers()
    if offsets is None or len(values) == 0:
        nothing = np.zeros(len(values), dtype=np.int64)
        return nothing, nothing, np.zeros(0, dtype=np.uint8)
    ends = np.frombuffer(offsets, dtype=kind)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    content = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return ends[:-1], np.diff(ends), content


def _byte(data: Bytes, at: Numbers, sizes: Numbers) -> Numbers:
    """The byte at each place; -1 for a value that is empty."""
    found = np.full(len(at), -1, dtype=np.int64)
    there = sizes > 0
    found[there] = data[at[there]]
    return found


def _by_head(rows: Numbers, starts: Numbers, data: Bytes) -> Iterator[tuple[Numbers, int]]:
    """The rows of each schema id."""
    if not rows.size:
        return
    at = starts[rows]
    ids = sum((data[at + 1 + place].astype(np.int64) << (24 - 8 * place) for place in range(4)), np.int64(0))
    assert isinstance(ids, np.ndarray)
    if (ids == ids[0]).all():
        yield rows, int(ids[0])
        return
    order = np.argsort(ids, kind="stable")
    distinct, first = np.unique(ids[order], return_index=True)
    for schema_id, part in zip(distinct, np.split(order, first[1:]), strict=True):
        yield rows[part], int(schema_id)


def _begin_with(head: Bytes, starts: Numbers, sizes: Numbers, data: Bytes) -> npt.NDArray[np.bool_]:
    same = sizes >= len(head)
    for place, byte in enumerate(head):
        candidates = np.flatnonzero(same)
        same[candidates] = data[starts[candidates] + place] == byte
    return same
