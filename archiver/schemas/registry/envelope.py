"""Read envelopes: magic byte 0 and an id, or 1 and a GUID, then the format's part.

They are before values or in headers (`header_ids`). Whole columns are read at once.
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
from archiver.wire.header_ids import VALUE_HEADER, has_foreign_header, header_ids
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
FOREIGN_HEADER: Final = "foreign_header@0"
UNKNOWN_SCHEMA_ID: Final = "unknown_schema_id@1"
UNKNOWN_SCHEMA_GUID: Final = "unknown_schema_guid@1"
BAD_SCHEMA: Final = "bad_schema@1"
WITHOUT_MEANING: Final = (UNKNOWN_SCHEMA_ID, UNKNOWN_SCHEMA_GUID, BAD_SCHEMA)
"""The errors that come from the id or GUID alone."""
_NOT_ASKED: Final = (*WITHOUT_MEANING, BAD_ENVELOPE)


class EnvelopeVerdict(NamedTuple):
    length: int
    error: str | None = None
    place: int = NOT_ONE

    @classmethod
    def unknown(cls, schema_id: SchemaNumber, length: int) -> EnvelopeVerdict:
        return cls(length, UNKNOWN_SCHEMA_GUID if isinstance(schema_id, UUID) else UNKNOWN_SCHEMA_ID)


class BodyChoice(Protocol):
    """A format's part of envelopes. Picklable. `min_bytes` is the least after the id."""

    @property
    def messages(self) -> tuple[str, ...]: ...

    @property
    def min_bytes(self) -> int: ...

    def verdicts(
        self, schema_id: SchemaNumber, rows: Numbers, column: ValueHeads
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        """Grouped. Raises subclasses of SchemaRegistryError."""

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        """Schemas that had to be requested."""

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self: ...

    def beside(self, waiting: BodyChoice) -> Self:
        """Give values of schemas that wait for approval an error."""


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Lengths (0 without an envelope) and places of messages.

    Places are NOT_ONE for refused values and null. `errors` are refused values by code. `bare` marks possible
    plain messages, with `coerce` only. `schema_ids` are known ids and GUIDs.
    """

    lengths: npt.NDArray[np.int32]
    which: npt.NDArray[np.int16]
    errors: dict[str, Flags]
    bare: Flags | None
    schema_ids: frozenset[SchemaNumber]


class EnvelopeReader(Protocol):
    """Reads the envelopes of a column. Picklable."""

    @property
    def messages(self) -> tuple[str, ...]:
        """The names of types to which places are indexes."""

    def read(self, values: pa.BinaryArray, headers: pa.ListArray | None = None) -> Envelopes:
        """Find each value's type. No bytes make this raise.

        Raises subclasses of SchemaRegistryError, with the first `row`.
        """

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        """Return schemas that had to be requested."""

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:
        """Return a copy that knows these schemas."""

    def beside(self, waiting: EnvelopeReader | None) -> Self:
        """Return a copy that gives values of schemas that wait for approval an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEnvelopes:
    """The header named `header` wins.

    With `coerce`, a value without either magic byte is a plain message of the only type, unless another
    registry's headers name its schema. No message can begin so: in Protobuf it would be field 0.
    """

    choice: BodyChoice
    coerce: bool = False
    header: bytes = VALUE_HEADER

    @property
    def messages(self) -> tuple[str, ...]:
        return self.choice.messages

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return self.choice.learned(schema_ids)

    def read(self, values: pa.BinaryArray, headers: pa.ListArray | None = None) -> Envelopes:
        """No bytes make this raise.

        Raises subclasses of SchemaRegistryError, with the first `row` and its `schema_id` or `schema_guid`.
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
            if headers is not None:
                foreign = bare & has_foreign_header(headers, self.header)
                reading.refuse(FOREIGN_HEADER, foreign)
                bare &= ~foreign
                valid &= ~foreign
            reading.which[bare] = 0
            valid &= ~bare
        reading.take(valid, column)
        return reading.envelopes(bare)

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:
        return replace(self, choice=self.choice.with_schemas(schemas))

    def beside(self, waiting: EnvelopeReader | None) -> Self:
        return (
            replace(self, choice=self.choice.beside(waiting.choice)) if isinstance(waiting, RegistryEnvelopes) else self
        )


class _EnvelopeReading:
    def __init__(self, choice: BodyChoice, count: int) -> None:
        self.which = np.full(count, NOT_ONE, dtype=np.int16)
        self._choice = choice
        self._lengths = np.zeros(count, dtype=np.int32)
        self._refused = _Refused(count)
        self._meant: set[SchemaNumber] = set()
        self._waiting: list[tuple[int, SchemaNumber, SchemaRegistryError]] = []

    def take(self, chosen: Flags, column: ValueHeads, owners: Numbers | None = None) -> None:
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

    def refuse(self, code: str, rows: Flags) -> None:
        if rows.any():
            self._refused.add(code, rows)

    def envelopes(self, bare: Flags | None) -> Envelopes:
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
    def __init__(self, count: int) -> None:
        self._codes = np.zeros(count, dtype=np.int8)
        self._known = [""]

    def add(self, code: str, rows: Flags | Numbers) -> None:
        if code not in self._known:
            self._known.append(code)
        self._codes[rows] = self._known.index(code)

    def by_code(self) -> dict[str, Flags]:
        masks = ((code, self._codes == at) for at, code in enumerate(self._known) if at)
        return {code: rows for code, rows in masks if rows.any()}


def _first(waiting: list[tuple[int, SchemaNumber, SchemaRegistryError]]) -> SchemaRegistryError:
    row, schema_id, error = min(waiting, key=lambda entry: entry[0])
    message = f"the meaning of a record's schema id isn't known yet, and {error.message}"
    return type(error)(message, **{**error.context, "row": row, **number_context(schema_id)})


def write_id(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(HEAD - 1, "big")


def head_bytes(schema_id: SchemaNumber) -> int:
    return GUID_HEAD if isinstance(schema_id, UUID) else HEAD


def _by_id(rows: Numbers, column: ValueHeads) -> Iterator[tuple[int, Numbers]]:
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
    if not rows.size:
        return
    data = pa.py_buffer(column.bytes_at(rows, 1, GUID_BYTES).tobytes())
    coded = pa.Array.from_buffers(pa.binary(GUID_BYTES), len(rows), [None, data]).dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    for guid, part in zip(coded.dictionary.to_pylist(), parts, strict=True):
        yield UUID(bytes=guid), rows[part]
