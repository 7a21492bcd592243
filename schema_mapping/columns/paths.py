"""Paths of columns: steps from the root. A step is a field's number or name.

Numbers below 0 are reserved steps (`names`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from schema_mapping.errors import EvolutionError
from schema_mapping.names import ELEMENT_STEP, MAP_KEY_STEP

Step: TypeAlias = int | str
Path: TypeAlias = tuple[Step, ...]

NAMED: Final = 1 << 30
"""A stored number from here on starts a name: the number minus NAMED is the name's length in bytes."""

PACKED: Final = 3
LONGEST: Final = 500
"""The most numbers in a stored path that has names: Postgres takes no index entry above 2,704 bytes."""


def is_field(step: Step) -> bool:
    """Not added columns, list elements, or a map's keys and values."""
    return isinstance(step, str) or step > 0


def is_required(path: Path) -> bool:
    """Whether a column is never null: keys of maps, and list elements if fields have numbers."""
    if path[-1] == MAP_KEY_STEP:
        return True
    return path[-1] == ELEMENT_STEP and not any(isinstance(step, str) for step in path)


def step_order(step: Step) -> tuple[bool, int, str]:
    return (True, 0, step) if isinstance(step, str) else (False, step, "")


def path_order(path: Path) -> tuple[tuple[bool, int, str], ...]:
    return tuple(map(step_order, path))


def stored_path(path: Path) -> list[int]:
    """Encode a path as numbers, for the registry.

    A name is NAMED plus its length in bytes, then UTF-8, three bytes to a number. Raises EvolutionError for too long
    names.
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
