"""The registry's envelope before a message: magic byte 0, schema id (4 bytes, big-endian), message indexes.

Indexes are zigzag varints: how many, then each; a single 0 stands for the first message. Envelopes are read over whole
columns: Python looks at each distinct envelope once, numpy finds the values that begin with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.errors import BadSchema, SchemaRegistryError
from archiver.schemas.registered import Indexes
from archiver.schemas.schema_ids import SchemaIds
from archiver.schemas.value_heads import Numbers, ValueHeads
from schema_mapping.union_mapping import NOT_ONE

Flags: TypeAlias = npt.NDArray[np.bool_]

HEAD: Final = 5
FIRST_MESSAGE: Final = (0,)
LONGEST_VARINT: Final = 5
MOST_INDEXES: Final = 100
LONGEST_ENVELOPE: Final = HEAD + LONGEST_VARINT * (MOST_INDEXES + 1)
COMMON_ENVELOPES: Final = 16

BAD_ENVELOPE: Final = "bad_envelope@0"
UNKNOWN_SCHEMA_ID: Final = "unknown_schema_id@1"
BAD_SCHEMA: Final = "bad_schema@1"
OTHER_MESSAGE: Final = "other_message@5"
AMBIGUOUS_MESSAGE: Final = "ambiguous_message@5"


class Verdict(NamedTuple):
    """What an envelope comes to: its length, and an error or else its message's place among those wanted."""

    length: int
    error: str | None = None
    place: int = NOT_ONE


@dataclass(frozen=True, slots=True)
class Envelopes:
    """For each value: the length of its envelope (0 where there is none), its message's place (NOT_ONE: refused, null).

    `errors` has the refused by code; `bare` those without any envelope that may be messages as they are, None without
    `coerce`; `schema_ids` the ids that mean something.
    """

    lengths: npt.NDArray[np.int32]
    which: npt.NDArray[np.int16]
    errors: dict[str, Flags]
    bare: Flags | None
    schema_ids: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeReader:
    """Reads the envelopes of a column whose values are one of `messages`.

    With `coerce`, a value without an envelope counts as a message of the one type there is: no message begins with the
    envelope's magic byte 0, which would be a tag of field number 0, so the two can't be taken for each other.
    """

    messages: tuple[str, ...]
    ids: SchemaIds
    coerce: bool = False

    def read(self, values: pa.BinaryArray) -> Envelopes:
        """Where each value's message begins, and which it is; never raises for what the bytes are.

        Raises the leaves of SchemaRegistryError where the schema registry can't say what an id means, with the
        `row` of the first such value and its `schema_id`.
        """
        column = ValueHeads.of(values)
        lengths = np.zeros(len(values), dtype=np.int32)
        which = np.full(len(values), NOT_ONE, dtype=np.int16)
        codes = np.zeros(len(values), dtype=np.int8)
        valid = np.asarray(values.is_valid())
        is_magic = (column.sizes > 0) & (column.heads[:, 0] == 0)
        whole = valid & is_magic & (column.sizes > HEAD)
        bare = valid & ~is_magic if self.coerce else None
        codes[valid & ~whole] = _CODES.index(BAD_ENVELOPE)
        if bare is not None:
            codes[bare], which[bare] = 0, 0
        meant: set[int] = set()
        waiting: list[tuple[int, int, SchemaRegistryError]] = []
        for rows, schema_id in _by_id(np.flatnonzero(whole), column.numbers_at(1)):
            try:
                for same, verdict in self._of_one_id(rows, schema_id, column):
                    lengths[same] = verdict.length if verdict.error is None else 0
                    which[same] = verdict.place
                    codes[same] = _CODES.index(verdict.error or "")
                    meant |= {schema_id} if verdict.error not in _WITHOUT_MEANING else set()
            except SchemaRegistryError as error:
                waiting.append((int(rows[0]), schema_id, error))
        if waiting:
            raise _first(waiting)
        errors = {code: codes == at for at, code in enumerate(_CODES) if at and (codes == at).any()}
        return Envelopes(lengths, which, errors, bare, frozenset(meant))

    def knowing(self, schemas: Mapping[int, bytes]) -> Self:
        """The reader, knowing more schemas; see `SchemaIds.learned`."""
        return replace(self, ids=self.ids.knowing(schemas))

    def _of_one_id(self, rows: Numbers, schema_id: int, column: ValueHeads) -> Iterator[tuple[Numbers, Verdict]]:
        """Verdicts over all the rows: on those of the first message together, then on the others."""
        is_first = column.heads[rows, HEAD] == 0
        verdict = self._judge(schema_id, (FIRST_MESSAGE, HEAD + 1))
        if verdict.error in _WITHOUT_MEANING:
            yield rows, verdict
            return
        if is_first.any():
            yield rows[is_first], verdict
            rows = rows[~is_first]
        for _ in range(COMMON_ENVELOPES):
            if not rows.size:
                return
            head = column.head(int(rows[0]), LONGEST_ENVELOPE)
            verdict = self._judge(schema_id, parse_indexes(head))
            # A damaged envelope says nothing of values that begin like it and go on otherwise.
            alike = column.begin_with(head[: verdict.length], rows) if verdict.length else rows == rows[0]
            yield rows[alike], verdict
            rows = rows[~alike]
        yield from self._one_by_one(rows, schema_id, column)

    def _one_by_one(self, rows: Numbers, schema_id: int, column: ValueHeads) -> Iterator[tuple[Numbers, Verdict]]:
        # Few envelopes are common to many values; what is left after those is looked at alone.
        found: defaultdict[Verdict, list[int]] = defaultdict(list)
        for row in rows.tolist():
            found[self._judge(schema_id, parse_indexes(column.head(row, LONGEST_ENVELOPE)))].append(row)
        for verdict, same in found.items():
            yield np.array(same, dtype=np.int64), verdict

    def _judge(self, schema_id: int, parsed: tuple[Indexes, int] | None) -> Verdict:
        if parsed is None:
            return Verdict(0, BAD_ENVELOPE)
        indexes, length = parsed
        try:
            names = self.ids.messages(schema_id, indexes)
        except BadSchema:
            return Verdict(length, BAD_SCHEMA)
        if names is None:
            return Verdict(length, UNKNOWN_SCHEMA_ID)
        places = [place for place, message in enumerate(self.messages) if message in names]
        match places:
            case []:
                return Verdict(length, OTHER_MESSAGE)
            case [place]:
                return Verdict(length, None, place)
            case _:
                return Verdict(length, AMBIGUOUS_MESSAGE)


_CODES: Final = ("", BAD_ENVELOPE, UNKNOWN_SCHEMA_ID, BAD_SCHEMA, OTHER_MESSAGE, AMBIGUOUS_MESSAGE)
_WITHOUT_MEANING: Final = (UNKNOWN_SCHEMA_ID, BAD_SCHEMA)


def _first(waiting: list[tuple[int, int, SchemaRegistryError]]) -> SchemaRegistryError:
    """The error of the first value that can't be judged, which says where it is."""
    row, schema_id, error = min(waiting, key=lambda each: each[0])
    message = f"the meaning of a record's schema id isn't known yet, and {error.message}"
    return type(error)(message, **{**error.context, "row": row, "schema_id": schema_id})


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


def write_envelope(schema_id: int, indexes: Indexes) -> bytes:
    """The envelope of a message, as serializers write it."""
    numbers = (0,) if indexes == FIRST_MESSAGE else (len(indexes), *indexes)
    return b"\0" + schema_id.to_bytes(HEAD - 1, "big") + b"".join(map(_written, numbers))


def _written(number: int) -> bytes:
    """A number of at least 0 as a zigzag varint."""
    value, out = number << 1, bytearray()
    while value > 0x7F:  # noqa: PLR2004 - what seven bits hold
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


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
