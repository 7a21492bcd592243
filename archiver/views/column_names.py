"""The names of a view's columns: unique ignoring case, and permanent for each field id.

A field is named by its path when it first appeared. Of fields that appear together, the shallower one is named first,
then the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from archiver.views.leaves import Leaf
from schema_mapping import names
from schema_mapping.columns.fixed import HEADERS_ID, KAFKA_FIELD

KEY: Final = "key"
VALUE: Final = "value"
HEADERS: Final = "headers"
TOMBSTONE: Final = "tombstone"
KEY_ERROR: Final = "key_error"
VALUE_ERROR: Final = "value_error"

_ROOTS: Final = {names.KEY: KEY, names.VAL: VALUE}
_TECHNICAL: Final = {
    names.RAW: "",
    names.ERR: "_error",
    names.PREFIX: "_prefix",
    names.FORM: "_form",
    names.UNRECOGNIZED: "_unrecognized",
}
KAFKA: Final = frozenset(f"{names.KAFKA}_{field.name}" for field in KAFKA_FIELD.type)
"""The names of the columns of `kafka`."""

OWN: Final = frozenset(
    {
        HEADERS,
        TOMBSTONE,
        *(root + ending for root in _ROOTS.values() for ending in _TECHNICAL.values()),
        *KAFKA,
    }
)
"""The names of the archiver's own columns. No field of a message has one of them."""


def column_names(history: Iterable[Sequence[Leaf]], given: Mapping[int, str] | None = None) -> dict[int, str]:
    """`given` names, then new names for each schema, oldest first."""
    assigned = dict(given or {})
    taken = {*OWN, *(name.lower() for name in assigned.values())}
    for schema in history:
        for leaf in sorted(schema, key=lambda leaf: len(leaf.path)):
            if leaf.field_id in assigned:
                continue
            own = _own_name(leaf)
            name = own if own is not None else _free_name(leaf, taken)
            assigned[leaf.field_id] = name
            taken.add(name.lower())
    return assigned


def _own_name(leaf: Leaf) -> str | None:
    if leaf.field_id == HEADERS_ID:
        return HEADERS
    if leaf.root == names.KAFKA:
        name = "_".join(leaf.path)
        return name if name in OWN else None
    if leaf.is_technical and len(leaf.path) == 2:  # noqa: PLR2004 - in the root itself
        return _ROOTS[leaf.root] + _TECHNICAL[leaf.path[-1]]
    return None


def _free_name(leaf: Leaf, taken: set[str]) -> str:
    return next(name for name in _wanted_names(leaf) if name.lower() not in taken)


def _wanted_names(leaf: Leaf) -> Iterator[str]:
    steps = [_TECHNICAL.get(step, step).removeprefix("_") if leaf.is_technical else step for step in leaf.path]
    if leaf.root == names.VAL and len(steps) > 1:
        yield "_".join(steps[1:])
    name = "_".join(steps)
    while True:
        yield name
        name = f"{name}_{leaf.field_id}"
