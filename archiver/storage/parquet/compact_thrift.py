"""Structs of Thrift's compact protocol, in which Parquet's footers and page headers are written.

`thrift_reader` reads them. A field is found by its id and its kind together: a reader skips a field whose kind isn't
the one that it expects, and so must we.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

BOOL, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
"""Kinds of values."""

Field: TypeAlias = tuple[int, int]
"""The id of a field, and its kind."""
Fields: TypeAlias = dict[Field, Any]
"""A struct. Its values are numbers, truths, memoryviews, structs, and pairs of a list's kind and its values."""


class ThriftError(Exception):
    """These bytes aren't what was expected."""


def number(fields: Fields, field: Field) -> int:
    """A number that has to be there."""
    found = fields.get(field)
    if type(found) is not int:
        raise ThriftError
    return found


def struct(fields: Fields, field: Field) -> Fields:
    """A struct that has to be there."""
    found: Fields | None = fields.get(field)
    if found is None:
        raise ThriftError
    return found


def listed(fields: Fields, field: Field, kind: int) -> Sequence[Any]:
    """The values of a list of this kind; none if there is no list."""
    found: tuple[int, Sequence[Any]] | None = fields.get(field)
    if found is None:
        return []
    of_kind, values = found
    if values and of_kind != kind:
        raise ThriftError
    return values
