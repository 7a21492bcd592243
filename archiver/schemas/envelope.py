"""Reads the schema registry's envelopes before values: magic byte 0, schema id (4 bytes, big-endian), format's part.

The id means the same in all formats. A format's `BodyChoice` reads its part after the id and says which message the
value is. `decode` then decodes the value. A whole column is read at once, without a Python object for each value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.errors import SchemaRegistryError
from archiver.schemas.value_heads import Numbers, ValueHeads
from schema_mapping.value_format import NOT_ONE

Flags: TypeAlias = npt.NDArray[np.bool_]

HEAD: Final = 5

BAD_ENVELOPE: Final = "bad_envelope@0"
UNKNOWN_SCHEMA_ID: Final = "unknown_schema_id@1"
BAD_SCHEMA: Final = "bad_schema@1"
WITHOUT_MEANING: Final = (UNKNOWN_SCHEMA_ID, BAD_SCHEMA)
"""The errors that come from the id alone, whatever follows it."""


class Verdict(NamedTuple):
    """What an envelope says: its length, and an error or else the place of its message in `BodyChoice.messages`."""

    length: int
    error: str | None = None
    place: int = NOT_ONE


class BodyChoice(Protocol):
    """A format's part of reading envelopes: what a schema id means, and where a value's body begins.

    Objects of this type pickle. `messages` are the types that a value may have. `min_bytes` is the smallest number of
    bytes that a value has after the id.
    """

    @property
    def messages(self) -> tuple[str, ...]:
        """The names of the types that a value may have. Verdicts name places in this tuple."""

    @property
    def min_bytes(self) -> int:
        """The smallest number of bytes that a value has after the id."""

    def verdicts(self, schema_id: int, rows: Numbers, column: ValueHeads) -> Iterator[tuple[Numbers, Verdict]]:
        """The verdicts on these rows, whose envelopes all have this id. Rows with the same verdict come together.

        Raises the subclasses of SchemaRegistryError if the schema registry can't say what the id means.
        """

    def learned(self, schema_ids: Iterable[int]) -> Mapping[int, bytes]:
        """The schemas of those ids that had to be asked of the schema registry."""

    def with_schemas(self, schemas: Mapping[int, bytes]) -> Self:
        """A copy that knows these schemas and needn't ask for them."""


@dataclass(frozen=True, slots=True)
class Envelopes:
    """The envelopes of a column: for each value the envelope's length, and the place of the value's message.

    The length is 0 for a value without an envelope. The place is NOT_ONE for a refused value and for null. `errors` has
    the refused values by error code. `bare` marks values without an envelope that may be plain messages; it is None
    unless the reader has `coerce`. `schema_ids` are the ids that the schema registry knows.
    """

    lengths: npt.NDArray[np.int32]
    which: npt.NDArray[np.int16]
    errors: dict[str, Flags]
    bare: Flags | None
    schema_ids: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeReader:
    """Reads the envelopes of a column of values.

    With `coerce`, a value that doesn't begin with the magic byte 0 counts as a plain message without an envelope; there
    is only one message then. This is safe if no message can begin with that byte: in Protobuf it would be field 0.
    """

    choice: BodyChoice
    coerce: bool = False

    def read(self, values: pa.BinaryArray) -> Envelopes:
        """Find where each value's message begins, and which message it is. No bytes make this raise.

        Raises the subclasses of SchemaRegistryError if the schema registry can't say what an id means, with the `row`
        of the first such value and its `schema_id`.
        """
        column = ValueHeads.of(values)
        lengths = np.zeros(len(values), dtype=np.int32)
        which = np.full(len(values), NOT_ONE, dtype=np.int16)
        refused = _Refused(len(values))
        valid = np.asarray(values.is_valid())
        is_magic = (column.sizes > 0) & (column.heads[:, 0] == 0)
        whole = valid & is_magic & (column.sizes >= HEAD + self.choice.min_bytes)
        bare = valid & ~is_magic if self.coerce else None
        refused.add(BAD_ENVELOPE, valid & ~whole if bare is None else valid & ~whole & ~bare)
        if bare is not None:
            which[bare] = 0
        meant: set[int] = set()
        waiting: list[tuple[int, int, SchemaRegistryError]] = []
        for rows, schema_id in _by_id(np.flatnonzero(whole), column.numbers_at(1)):
            try:
                for same, verdict in self.choice.verdicts(schema_id, rows, column):
                    if verdict.error is None:
                        lengths[same] = verdict.length
                    else:
                        refused.add(verdict.error, same)
                    which[same] = verdict.place
                    meant |= {schema_id} if verdict.error not in WITHOUT_MEANING else set()
            except SchemaRegistryError as error:
                waiting.append((int(rows[0]), schema_id, error))
        if waiting:
            raise _first(waiting)
        return Envelopes(lengths, which, refused.by_code(), bare, frozenset(meant))

    def with_schemas(self, schemas: Mapping[int, bytes]) -> Self:
        """A copy of the reader that knows these schemas; see `BodyChoice.learned`."""
        return replace(self, choice=self.choice.with_schemas(schemas))


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


def _first(waiting: list[tuple[int, int, SchemaRegistryError]]) -> SchemaRegistryError:
    """The error of the first value whose schema id isn't known yet, with its row."""
    row, schema_id, error = min(waiting, key=lambda each: each[0])
    message = f"the meaning of a record's schema id isn't known yet, and {error.message}"
    return type(error)(message, **{**error.context, "row": row, "schema_id": schema_id})


def write_id(schema_id: int) -> bytes:
    """Write the part of an envelope that all formats share: magic byte and schema id."""
    return b"\0" + schema_id.to_bytes(HEAD - 1, "big")


def _by_id(rows: Numbers, ids: npt.NDArray[np.uint32]) -> Iterator[tuple[Numbers, int]]:
    """Group the rows by schema id."""
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
