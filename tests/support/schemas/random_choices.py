"""Random choices by hypothesis (shrinks) or a seeded generator (fast)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

T = TypeVar("T")


class Choices(Protocol):
    def integer(self, low: int, high: int) -> int: ...

    def data(self, size: int) -> bytes: ...


class DrawnChoices:
    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def data(self, size: int) -> bytes:
        return self._draw(st.binary(min_size=size, max_size=size))


class SeededChoices:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def data(self, size: int) -> bytes:
        return self._random.randbytes(size)


def pick(choices: Choices, options: Sequence[T]) -> T:
    return options[choices.integer(0, len(options) - 1)]


def chance(choices: Choices, percent: int) -> bool:
    return percent > 0 and choices.integer(0, 99) >= 100 - percent
