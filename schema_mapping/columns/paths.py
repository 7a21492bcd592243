"""Paths of columns: steps from the root.

A step to a field is its number or name. Numbers below 0 are the reserved steps of `names`, or lead to the nanoseconds
of a field's times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from schema_mapping.errors import EvolutionError
from schema_mapping.names import ELEMENT_STEP, MAP_KEY_STEP, NANOS_STEP

Step: TypeAlias = int | str
Path: TypeAlias = tuple[Step, ...]

NAMED: Final = 1 << 30
"""A stored number from here on starts a name: the number minus NAMED is the name's length in bytes."""

PACKED: Final = 3
LONGEST: Final = 500
"""The most numbers in a stored path that has names: Postgres takes no index entry above 2,704 bytes."""


def is_field(step: Step) -> bool:
    """Also to a field's nanoseconds, but not to an added column, or into a list or map."""
    return isinstance(step, str) or step > 0 or is_nanos(step)


def nanos_step(number: int) -> int:
    return NANOS_STEP - number


def is_nanos(step: Step) -> bool:
    return isinstance(step, int) and step < NANOS_STEP


def field_step(step: Step) -> Step:
    """Also for a step to the field's nanoseconds."""
    return NANOS_STEP - step if isinstance(step, int) and is_nanos(step) else step


def is_required(path: Path) -> bool:
    """Never null: map keys, and list elements if fields have numbers."""
    if path[-1] == MAP_KEY_STEP:
        return True
    return path[-1] == ELEMENT_STEP and not any(isinstance(step, str) for step in path)


def step_order(step: Step) -> tuple[bool, int, str]:
    return (True, 0, step) if isinstance(step, str) else (False, step, "")


def path_order(path: Path) -> tuple[tuple[bool, int, str], ...]:
    return tuple(map(step_order, path))


def stored_path(path: Path) -> list[int]:
    """Encode a path as numbers, for the registry. Raises EvolutionError for too long names.

    A name is NAMED plus its length in bytes, then UTF-8, three bytes to a number.
    """
    stored = [number for step in path for number in _stored(step)]
    if len(stored) > LONGEST and any(isinstance(step, str) for step in path):
        raise EvolutionError("the names on the way to a column are too long to be kept: shorten them", path=path)
    return stored


def read_path(stored: Iterable[int]) -> Path:
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
