"""Reads the schema registry's envelopes: magic byte 0 and the schema's id, or 1 and its GUID, then the format's part.

An envelope is before a value, or in a header of its record (`header_ids`). Ids and GUIDs mean the same in all formats.
A format's `BodyChoice` reads its part after them and says which message the value is. `decode` then decodes the value.
A whole column is read at once, without a Python object for each value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple, Protocol, Self, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.errors import SchemaRegistryError
from archiver.schemas.registry.schema_kind import number_context
from archiver.schemas.registry.value_heads import Numbers, ValueHeads
from archiver.wire.header_ids import VALUE_HEADER, header_ids
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping.value_format import NOT_ONE

Flags: TypeAlias = npt.NDArray[np.bool_]

HEAD: Final = 5
GUID_BYTES: Final = 16
GUID_HEAD: Final = 1 + GUID_BYTES
MAGIC_ID: Final = 0
MAGIC_GUID: Final = 1

BAD_ENVELOPE: Final = "bad_envelope@0"
BAD_HEADER: Final = "bad_header@0"
UNKNOWN_SCHEMA_ID: Final = "unknown_schema_id@1"
UNKNOWN_SCHEMA_GUID: Final = "unknown_schema_guid@1"
BAD_SCHEMA: Final = "bad_schema@1"
WITHOUT_MEANING: Final = (UNKNOWN_SCHEMA_ID, UNKNOWN_SCHEMA_GUID, BAD_SCHEMA)
"""The errors that come from the id or GUID alone, whatever follows it."""
_NOT_ASKED: Final = (*WITHOUT_MEANING, BAD_ENVELOPE)


class EnvelopeVerdict(NamedTuple):
    """What an envelope says: its length, and an error or else the place of its message in `BodyChoice.messages`."""

    length: int
    error: str | None = None
    place: int = NOT_ONE


class BodyChoice(Protocol):
    """A format's part of reading envelopes: what a schema id means, and where a value's body begins.

    Objects of this type pickle. `messages` are the types that a value may have. `min_bytes` is the smallest number of
    bytes that an envelope has after the id.
    """

    @property
    def messages(self) -> tuple[str, ...]:
        """The names of the types that a value may have. Verdicts name places in this tuple."""

    @property
    def min_bytes(self) -> int:
        """The smallest number of bytes that an envelope has after the id."""

    def verdicts(
        self, schema_id: SchemaNumber, rows: Numbers, column: ValueHeads
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        """The verdicts on these rows, whose envelopes all have this id or GUID. Rows with one verdict come together.

        Raises the subclasses of SchemaRegistryError if the schema registry can't say what the id means.
        """

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        """The schemas of those ids that had to be asked of the schema registry."""

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:
        """A copy that knows these schemas and needn't ask for them."""

    def beside(self, waiting: BodyChoice) -> Self:
        """A copy that knows that the schemas of `waiting` wait for approval: their values get an error."""


@dataclass(frozen=True, slots=True)
class Envelopes:
    """The envelopes of a column: for each value the envelope's length, and the place of the value's message.

    The length is 0 for a value without an envelope, also if a header has it. The place is NOT_ONE for a refused value
    and for null. `errors` has the refused values by error code. `bare` marks values without an envelope that may be
    plain messages; it is None unless the reader has `coerce`. `schema_ids` are the ids and GUIDs that the schema
    registry knows.
    """

    lengths: npt.NDArray[np.int32]
    which: npt.NDArray[np.int16]
    errors: dict[str, Flags]
    bare: Flags | None
    schema_ids: frozenset[SchemaNumber]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeReader:
    """Reads the envelopes of a column of values.

    `header` is the name of the header that may have the envelope instead: it wins. With `coerce`, a value that begins
    with neither magic byte and has no such header counts as a plain message; there is only one message then. This is
    safe if no message can begin with those bytes: in Protobuf they would be field 0.
    """

    choice: BodyChoice
    coerce: bool = False
    header: bytes = VALUE_HEADER

    def read(self, values: pa.BinaryArray, headers: pa.ListArray | None = None) -> Envelopes:
        """Find where each value's message begins, and which message it is. No bytes make this raise.

        `headers` are those of the same records. Raises the subclasses of SchemaRegistryError if the schema registry
        can't say what an id means, with the `row` of the first such value and its `schema_id` or `schema_guid`.
        """
        reading = _EnvelopeReading(self.choice, len(values))
        valid = np.array(values.is_valid())
        named = None if headers is None else header_ids(headers, self.header)
        if named is not None:
            reading.take(valid[named.rows], ValueHeads.of(named.values), named.rows)
            valid[named.rows] = False
        column = ValueHeads.of(values)
        bare = None
        if self.coerce:
            bare = valid & ~((column.sizes > 0) & (column.heads[:, 0] <= MAGIC_GUID))
            reading.which[bare] = 0
            valid &= ~bare
        reading.take(valid, column)
        return reading.envelopes(bare)

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:
        """A copy of the reader that knows these schemas; see `BodyChoice.learned`."""
        return replace(self, choice=self.choice.with_schemas(schemas))

    def beside(self, waiting: EnvelopeReader | None) -> Self:
        """A copy of the reader for the time that a schema change waits for approval; `waiting` reads it."""
        return self if waiting is None else replace(self, choice=self.choice.beside(waiting.choice))


class _EnvelopeReading:
    """What the envelopes of a column say, as they are read. `which` has the places of messages."""

    def __init__(self, choice: BodyChoice, count: int) -> None:
        self.which = np.full(count, NOT_ONE, dtype=np.int16)
        self._choice = choice
        self._lengths = np.zeros(count, dtype=np.int32)
        self._refused = _Refused(count)
        self._meant: set[SchemaNumber] = set()
        self._waiting: list[tuple[int, SchemaNumber, SchemaRegistryError]] = []

    def take(self, chosen: Flags, column: ValueHeads, owners: Numbers | None = None) -> None:
        """Read the chosen envelopes of a column: before its values, or in headers of the values `owners`."""
        magic, least = column.heads[:, 0], self._choice.min_bytes
        by_id = chosen & (magic == MAGIC_ID) & (column.sizes >= HEAD + least)
        rest = np.flatnonzero(chosen & ~by_id)
        is_guid = (magic[rest] == MAGIC_GUID) & (column.sizes[rest] >= GUID_HEAD + least)
        self._refuse(BAD_ENVELOPE, rest[~is_guid], owners)
        groups: Iterator[tuple[SchemaNumber, Numbers]] = chain(
            _by_id(np.flatnonzero(by_id), column), _by_guid(rest[is_guid], column)
        )
        for schema_id, rows in groups:
            try:
                for same, verdict in self._choice.verdicts(schema_id, rows, column):
                    self._settle(verdict, same, owners)
                    self._meant |= {schema_id} if verdict.error not in _NOT_ASKED else set()
            except SchemaRegistryError as error:
                self._waiting.append((int(rows[0] if owners is None else owners[rows[0]]), schema_id, error))

    def envelopes(self, bare: Flags | None) -> Envelopes:
        """What was read. Raises the error of the first value whose id the schema registry can't be asked about."""
        if self._waiting:
            raise _first(self._waiting)
        return Envelopes(self._lengths, self.which, self._refused.by_code(), bare, frozenset(self._meant))

    def _settle(self, verdict: EnvelopeVerdict, rows: Numbers, owners: Numbers | None) -> None:
        if verdict.error is not None:
            self._refuse(verdict.error, rows, owners)
        elif owners is None:
            self._lengths[rows] = verdict.length
        self.which[rows if owners is None else owners[rows]] = verdict.place

    def _refuse(self, code: str, rows: Numbers, owners: Numbers | None) -> None:
        if owners is None:
            self._refused.add(code, rows)
        else:
            self._refused.add(BAD_HEADER if code == BAD_ENVELOPE else code, owners[rows])


class _Refused:
    """Collects the refused rows by error code."""

    def __init__(self, count: int) -> None:
        self._codes = np.zeros(count, dtype=np.int8)
        self._known = [""]

    def add(self, code: str, rows: Flags | Numbers) -> None:
        if code not in self._known:
            self._known.append(code)
        self._codes[rows] = self._known.index(code)

    def by_code(self) -> dict[str, Flags]:
        found = ((code, self._codes == at) for at, code in enumerate(self._known) if at)
        return {code: rows for code, rows in found if rows.any()}


def _first(waiting: list[tuple[int, SchemaNumber, SchemaRegistryError]]) -> SchemaRegistryError:
    """The error of the first value whose schema id isn't known yet, with its row."""
    row, schema_id, error = min(waiting, key=lambda each: each[0])
    message = f"the meaning of a record's schema id isn't known yet, and {error.message}"
    return type(error)(message, **{**error.context, "row": row, **number_context(schema_id)})


def write_id(schema_id: int) -> bytes:
    """Write the part of an envelope that all formats share: magic byte and schema id."""
    return b"\0" + schema_id.to_bytes(HEAD - 1, "big")


def head_bytes(schema_id: SchemaNumber) -> int:
    """How many bytes of an envelope the magic byte and an id or GUID take."""
    return GUID_HEAD if isinstance(schema_id, UUID) else HEAD


def _by_id(rows: Numbers, column: ValueHeads) -> Iterator[tuple[int, Numbers]]:
    """Group the rows by the schema id in their envelopes."""
    if not rows.size:
        return
    own = column.numbers_at(1)[rows]
    if (own == own[0]).all():
        yield int(own[0]), rows
        return
    order = np.argsort(own, kind="stable")
    distinct, first = np.unique(own[order], return_index=True)
    for schema_id, part in zip(distinct, np.split(order, first[1:]), strict=True):
        yield int(schema_id), rows[part]


def _by_guid(rows: Numbers, column: ValueHeads) -> Iterator[tuple[UUID, Numbers]]:
    """Group the rows by the GUID in their envelopes."""
    if not rows.size:
        return
    data = pa.py_buffer(column.bytes_at(rows, 1, GUID_BYTES).tobytes())
    coded = pa.Array.from_buffers(pa.binary(GUID_BYTES), len(rows), [None, data]).dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    for guid, part in zip(coded.dictionary.to_pylist(), parts, strict=True):
        yield UUID(bytes=guid), rows[part]
