"""How far open erasures are: whether all of their records were found, so that their end may be attested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from catalog.registry.erased_offsets import CONDITION, SEARCHED_MS, SUPERSEDED_BY


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Open erasures by how far they are.

    Those of `searched` go by known offsets, or the run with their condition has found all that there was. The search of
    the others was cut short: `superseded` ones were followed by one that ended, and `unsearched` ones weren't. No
    condition is kept, so nobody else can go on with a search.
    """

    searched: tuple[str, ...]
    superseded: tuple[str, ...]
    unsearched: tuple[str, ...]

    @classmethod
    def of(cls, erasures: Mapping[str, Mapping[str, Any]]) -> Self:
        """How far these are, by what is kept of them."""
        cut = {each: value for each, value in erasures.items() if not is_searched(value)}
        return cls(
            searched=tuple(each for each in erasures if each not in cut),
            superseded=tuple(each for each, value in cut.items() if SUPERSEDED_BY in value),
            unsearched=tuple(each for each, value in cut.items() if SUPERSEDED_BY not in value),
        )


def is_searched(value: Mapping[str, Any]) -> bool:
    """Whether all records of an erasure are known by their offsets, by what is kept of it."""
    return SEARCHED_MS in value or CONDITION not in value
