"""Where random tests take their choices from: hypothesis, which shrinks, or a seeded generator, which is fast."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

T = TypeVar("T")


class Choices(Protocol):
    """A source of choices."""

    def integer(self, low: int, high: int) -> int: ...

    def data(self, size: int) -> bytes: ...


class DrawnChoices:
    """Choices that hypothesis makes; it shrinks them toward the lowest."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def data(self, size: int) -> bytes:
        return self._draw(st.binary(min_size=size, max_size=size))


class SeededChoices:
    """Choices of a pseudo-random generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def data(self, size: int) -> bytes:
        return self._random.randbytes(size)


def pick(choices: Choices, options: Sequence[T]) -> T:
    """One of `options`; the first is the simplest."""
    return options[choices.integer(0, len(options) - 1)]


def chance(choices: Choices, percent: int) -> bool:
    """True in about `percent` of a hundred cases."""
    return percent > 0 and choices.integer(0, 99) >= 100 - percent
