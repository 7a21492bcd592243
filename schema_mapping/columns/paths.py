"""Paths of columns: from the root of a key or value, step by step.

A step to a field is its number or its name, whichever the format knows fields by. A number is above 0; the numbers
below 0 are the reserved steps of `names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from schema_mapping.errors import EvolutionError

Step: TypeAlias = int | str
Path: TypeAlias = tuple[Step, ...]

NAMED: Final = 1 << 30
"""Numbers from here on announce a name among stored numbers; what is added to it is the name's length in bytes."""

PACKED: Final = 3
LONGEST: Final = 500
"""Numbers that a stored path may have: Postgres takes no index entry above 2,704 bytes."""


def is_field(step: Step) -> bool:
    """Whether the step leads to a field, and not to a column of ours, an element, a key or a value."""
    return isinstance(step, str) or step > 0


def step_order(step: Step) -> tuple[bool, int, str]:
    """What steps are sorted by: numbers, then names."""
    return (True, 0, step) if isinstance(step, str) else (False, step, "")


def path_order(path: Path) -> tuple[tuple[bool, int, str], ...]:
    """What paths are sorted by."""
    return tuple(map(step_order, path))


def stored_path(path: Path) -> list[int]:
    """A path as the registry keeps it: numbers alone. A path without names is kept as it is.

    A name becomes its length in bytes, marked, and its UTF-8, three bytes to a number. Raises EvolutionError for names
    that are too long to keep.
    """
    stored = [number for step in path for number in _stored(step)]
    if len(stored) > LONGEST and any(isinstance(step, str) for step in path):
        raise EvolutionError("the names on the way to a column are too long to be kept: shorten them", path=path)
    return stored


def read_path(stored: Iterable[int]) -> Path:
    """The path that `stored_path` gave."""
    numbers = iter(stored)
    return tuple(number if number < NAMED else _name(number - NAMED, numbers) for number in numbers)


def _stored(step: Step) -> list[int]:
    if not isinstance(step, str):
        return [step]
    text = step.encode()
    parts = [text[at : at + PACKED].ljust(PACKED, b"\0") for at in range(0, len(text), PACKED)]
    return [NAMED + len(text), *(int.from_bytes(part, "big") for part in parts)]


def _name(size: int, numbers: Iterator[int]) -> str:
    parts = [next(numbers).to_bytes(PACKED, "big") for _ in range(-(-size // PACKED))]
    return b"".join(parts)[:size].decode()
