"""How well the schema fitted a file's keys and values, as files, registry and journal keep it: counts that add up.

JSON of files has no key for it, because older archivers take no key that they don't know. It lies beside a file's JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self


class Doubt(StrEnum):
    """Why a schema is hardly the one that its values were written with."""

    FAILED = "most values can't be decoded"
    BLANK = "the schema knows no field of most values"
    UNKNOWN = "most values have fields that the schema doesn't know"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The counts of the keys, or of the values, that have a schema.

    `values` are those that aren't null, with `size_bytes` in all. Of these, `failed` couldn't be decoded, and `raw` are
    kept whole in `__raw__` (of keys, which always are, none is counted). `unknown` have fields that the schema doesn't
    know, with `unknown_bytes` in all. `blank` are those of which it knows no field at all. `unapproved` are kept raw
    because they fit only a schema change that waits for approval; they aren't part of `failed`.
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
        """The share of the values that `count` is, between 0 and 1."""
        return count / self.values if self.values else 0.0

    @property
    def byte_share(self) -> float:
        """The share of bytes that belong to fields that the schema doesn't know."""
        return self.unknown_bytes / self.size_bytes if self.size_bytes else 0.0

    @property
    def doubt(self) -> Doubt | None:
        """What is unlikely about the counts, the worst of it; None if they may well be right."""
        for count, doubt in ((self.failed, Doubt.FAILED), (self.blank, Doubt.BLANK), (self.unknown, Doubt.UNKNOWN)):
            if 2 * count > self.values:
                return doubt
        return None

    def to_json(self) -> dict[str, int]:
        """Plain JSON values: the counts that aren't 0."""
        return {name: count for name in _COUNTS if (count := getattr(self, name))}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote. Counts that newer archivers added are left out."""
        return cls(**{name: int(value.get(name, 0)) for name in _COUNTS})


_COUNTS = tuple(each.name for each in fields(Fit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """How well the schemas fitted keys and values. A part without a schema has no counts."""

    key: Fit = field(default_factory=Fit)
    value: Fit = field(default_factory=Fit)

    def __add__(self, other: Self) -> Self:
        return type(self)(key=self.key + other.key, value=self.value + other.value)

    @property
    def parts(self) -> dict[str, Fit]:
        """The parts that have a schema, `key` and `value`."""
        return {name: fit for name, fit in (("key", self.key), ("value", self.value)) if fit.values}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: fit.to_json() for name, fit in self.parts.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**{name: Fit.from_json(value[name]) for name in ("key", "value") if name in value})
