"""How well the schema fitted a file: counts that add up.

In JSON beside the file's: older archivers refuse unknown keys in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self


class Doubt(StrEnum):
    FAILED = "most values can't be decoded"
    BLANK = "the schema knows no field of most values"
    UNKNOWN = "most values have fields that the schema doesn't know"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Counts of keys or values with a schema.

    Of non-null `values`, `failed` couldn't be decoded, `raw` are kept in `__raw__` (none for keys), `unknown` have
    unknown fields, `blank` only such. `unapproved` are raw until a schema change is approved, and not `failed`.
    """

    values: int = 0
    size_bytes: int = 0
    failed: int = 0
    raw: int = 0
    unknown: int = 0
    unknown_bytes: int = 0
    blank: int = 0
    unapproved: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in _COUNTS})

    def share(self, count: int) -> float:
        return count / self.values if self.values else 0.0

    @property
    def byte_share(self) -> float:
        return self.unknown_bytes / self.size_bytes if self.size_bytes else 0.0

    @property
    def doubt(self) -> Doubt | None:
        """The worst one."""
        for count, doubt in ((self.failed, Doubt.FAILED), (self.blank, Doubt.BLANK), (self.unknown, Doubt.UNKNOWN)):
            if 2 * count > self.values:
                return doubt
        return None

    def to_json(self) -> dict[str, int]:
        return {name: count for name in _COUNTS if (count := getattr(self, name))}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Unknown counts of newer archivers are dropped."""
        return cls(**{name: int(value.get(name, 0)) for name in _COUNTS})


_COUNTS = tuple(member.name for member in fields(Fit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """Parts without a schema have no counts."""

    key: Fit = field(default_factory=Fit)
    value: Fit = field(default_factory=Fit)

    def __add__(self, other: Self) -> Self:
        return type(self)(key=self.key + other.key, value=self.value + other.value)

    @property
    def parts(self) -> dict[str, Fit]:
        return {name: fit for name, fit in (("key", self.key), ("value", self.value)) if fit.values}

    def to_json(self) -> dict[str, Any]:
        return {name: fit.to_json() for name, fit in self.parts.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{name: Fit.from_json(value[name]) for name in ("key", "value") if name in value})
