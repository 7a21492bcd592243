"""Find an envelope's message by the indexes after the id or GUID.

Indexes are zigzag varints: their number, then each index; a single 0 is the first message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self
from uuid import UUID

import numpy as np

from archiver.errors import BadSchema
from archiver.schemas.protobuf.registered_schema import Indexes
from archiver.schemas.protobuf.schema_ids import SchemaIds
from archiver.schemas.registry.envelope import (
    BAD_ENVELOPE,
    BAD_SCHEMA,
    GUID_HEAD,
    HEAD,
    WITHOUT_MEANING,
    BodyChoice,
    EnvelopeVerdict,
    head_bytes,
    write_id,
)
from archiver.schemas.registry.value_heads import Numbers, ValueHeads
from catalog.model import SchemaIdentity, SchemaNumber

FIRST_MESSAGE: Final = (0,)
LONGEST_VARINT: Final = 5
MOST_INDEXES: Final = 100
LONGEST_INDEXES: Final = LONGEST_VARINT * (MOST_INDEXES + 1)
COMMON_ENVELOPES: Final = 16

OTHER_MESSAGE: Final = f"other_message@{HEAD}"
AMBIGUOUS_MESSAGE: Final = f"ambiguous_message@{HEAD}"
GUID_OTHER_MESSAGE: Final = f"other_message@{GUID_HEAD}"
GUID_AMBIGUOUS_MESSAGE: Final = f"ambiguous_message@{GUID_HEAD}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChoice:
    messages: tuple[str, ...]
    ids: SchemaIds

    @property
    def min_bytes(self) -> int:
        return 1

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return self.ids.learned(schema_ids)

    def beside(self, waiting: BodyChoice) -> Self:  # noqa: ARG002 - the message decides, not the schema's version
        """Any version is decoded with the current one."""
        return self

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:
        return replace(self, ids=self.ids.with_schemas(schemas))

    def verdicts(
        self, schema_id: SchemaNumber, rows: Numbers, column: ValueHeads
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        """Values of the first message come first."""
        at = head_bytes(schema_id)
        is_first = column.byte_at(rows, at) == 0
        # Any bytes may begin with 1. If nothing after a GUID can be indexes, it is none, and no lookup is needed.
        if at == HEAD or is_first.any():
            verdict = self._judge(schema_id, (FIRST_MESSAGE, at + 1))
            if verdict.error in WITHOUT_MEANING:
                yield rows, verdict
                return
            if is_first.any():
                yield rows[is_first], verdict
                rows = rows[~is_first]
        for _ in range(COMMON_ENVELOPES):
            if not rows.size:
                return
            head = column.head(int(rows[0]), at + LONGEST_INDEXES)
            verdict = self._read(schema_id, head)
            # A damaged envelope says nothing about other values that begin with the same bytes.
            alike = column.begin_with(head[: verdict.length], rows) if verdict.length else rows == rows[0]
            yield rows[alike], verdict
            rows = rows[~alike]
        yield from self._one_by_one(rows, schema_id, column)

    def _one_by_one(
        self, rows: Numbers, schema_id: SchemaNumber, column: ValueHeads
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        # Most values share a few common envelopes; these rows have rare ones, so each is read separately.
        by_verdict: defaultdict[EnvelopeVerdict, list[int]] = defaultdict(list)
        longest = head_bytes(schema_id) + LONGEST_INDEXES
        for row in rows.tolist():
            by_verdict[self._read(schema_id, column.head(row, longest))].append(row)
        for verdict, same in by_verdict.items():
            yield np.array(same, dtype=np.int64), verdict

    def _read(self, schema_id: SchemaNumber, head: bytes) -> EnvelopeVerdict:
        """Old clients' plain varints are tried only if zigzag names no message."""
        at = head_bytes(schema_id)
        parsed = parse_indexes(head, at)
        verdict = EnvelopeVerdict(0, BAD_ENVELOPE) if parsed is None else self._judge(schema_id, parsed)
        if at != HEAD or (parsed is not None and self.ids.messages(schema_id, parsed[0])):
            return verdict
        plain = parse_indexes(head, at, zigzag=False)
        older = verdict if plain is None else self._judge(schema_id, plain)
        return older if older.error is None else verdict

    def _judge(self, schema_id: SchemaNumber, parsed: tuple[Indexes, int]) -> EnvelopeVerdict:
        indexes, length = parsed
        is_guid = isinstance(schema_id, UUID)
        try:
            names = self.ids.messages(schema_id, indexes)
        except BadSchema:
            return EnvelopeVerdict(length, BAD_SCHEMA)
        if names is None:
            return EnvelopeVerdict.unknown(schema_id, length)
        places = [place for place, message in enumerate(self.messages) if message in names]
        match places:
            case []:
                return EnvelopeVerdict(length, GUID_OTHER_MESSAGE if is_guid else OTHER_MESSAGE)
            case [place]:
                return EnvelopeVerdict(length, None, place)
            case _:
                return EnvelopeVerdict(length, GUID_AMBIGUOUS_MESSAGE if is_guid else AMBIGUOUS_MESSAGE)


def parse_indexes(value: bytes, at: int = HEAD, *, zigzag: bool = True) -> tuple[Indexes, int] | None:
    """The indexes and the envelope's length. None if cut off or absurd.

    Without `zigzag`, plain varints as clients of 2021 wrote them.
    """
    count, at = _varint(value, at, zigzag=zigzag)
    if count is None or not 0 <= count <= MOST_INDEXES:
        return None
    if count == 0:
        return FIRST_MESSAGE, at
    indexes = []
    for _ in range(count):
        index, at = _varint(value, at, zigzag=zigzag)
        if index is None or index < 0:
            return None
        indexes.append(index)
    return tuple(indexes), at


def write_envelope(schema_id: int, indexes: Indexes) -> bytes:
    numbers = (0,) if indexes == FIRST_MESSAGE else (len(indexes), *indexes)
    return write_id(schema_id) + b"".join(map(_written, numbers))


def _written(number: int) -> bytes:
    value, out = number << 1, bytearray()
    while value > 0x7F:  # noqa: PLR2004 - what seven bits hold
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _varint(value: bytes, at: int, *, zigzag: bool) -> tuple[int | None, int]:
    number = 0
    for index, byte in enumerate(value[at : at + LONGEST_VARINT]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 - without the bit that says that more follows
            return (number >> 1 ^ -(number & 1) if zigzag else number), at + index + 1
    return None, at
