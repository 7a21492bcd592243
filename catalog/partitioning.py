"""Partitioning as plain values.

Transforms as in Iceberg's metadata: `identity`, `bucket[16]`, `truncate[4]`, `year` to `hour`.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

TIMES: Final = ("year", "month", "day", "hour")
MOST_BUCKETS: Final = 1_000_000
MOST_COLUMNS: Final = 8

_TERM: Final = re.compile(r"\s*(?P<function>[a-z]+)\s*\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<source>[^\s(),]+)\s*\)\s*")
_PATH: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_WITH_WIDTH: Final = ("bucket", "truncate")
_ROOTS: Final = ("key.", "val.", "kafka.", "ingest_timestamp")
_EXAMPLES: Final = (
    "write 'hour', 'day', 'month' or 'year', or a list such as "
    '["day", "val.customer.region", "bucket(16, key.__raw__)", "truncate(4, val.sku)"]'
)


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """A term of `partition_by`. `source` is a dotted column, None for the ingest timestamp."""

    transform: str
    source: str | None

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse `day`, `val.region`, `bucket(16, key.__raw__)`. Raises ValueError."""
        bare = text.strip()
        if bare in TIMES:
            return cls(bare, None)
        if _is_column(bare):
            return cls("identity", bare)
        found = _TERM.fullmatch(text)
        if found is None or not _is_column(found["source"]):
            raise ValueError(f"{text!r} is no partition: {_EXAMPLES}")
        function, width = found["function"], found["width"]
        if function not in (*TIMES, *_WITH_WIDTH, "identity"):
            raise ValueError(f"{text!r}: there is no transform {function!r}; {_EXAMPLES}")
        if function not in _WITH_WIDTH:
            if width is not None:
                raise ValueError(f"{text!r}: {function} takes a column and no number")
            return cls(function, found["source"])
        if width is None or not 1 <= int(width) <= MOST_BUCKETS:
            raise ValueError(f"{text!r}: {function} takes a number from 1 to {MOST_BUCKETS} and a column")
        return cls(f"{function}[{int(width)}]", found["source"])

    def __str__(self) -> str:
        if self.source is None:
            return self.transform
        if self.transform == "identity":
            return self.source
        function, _, width = self.transform.rstrip("]").partition("[")
        return f"{function}({width}, {self.source})" if width else f"{function}({self.source})"


def _is_column(text: str) -> bool:
    return text.startswith(_ROOTS) and _PATH.fullmatch(text) is not None


def terms_of(texts: Sequence[str]) -> tuple[PartitionTerm, ...]:
    """Parse configured terms. Raises ValueError for wrong or repeated ones."""
    if not 1 <= len(texts) <= MOST_COLUMNS:
        raise ValueError(f"give one to {MOST_COLUMNS} partitions: {_EXAMPLES}")
    found = tuple(PartitionTerm.of(text) for text in texts)
    if twice := next((one for one in found if found.count(one) > 1), None):
        raise ValueError(f"{str(twice)!r} is named twice")
    return found


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    name: str
    transform: str
    source_id: int

    @property
    def by(self) -> str:
        return f"{self.transform}({self.source_id})"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The fields of a partition spec. `ingest_ids` are the field ids of the ingest timestamp."""

    columns: tuple[PartitionColumn, ...]
    ingest_ids: frozenset[int]

    @property
    def by(self) -> str:
        return ", ".join(each.by for each in self.columns)

    @property
    def time(self) -> PartitionColumn | None:
        """The first time partition of the ingest timestamp, if any."""
        return next((each for each in self.columns if self.is_ingest_time(each)), None)

    @property
    def is_time_alone(self) -> bool:
        return len(self.columns) == 1 and self.time is not None

    def is_ingest_time(self, column: PartitionColumn) -> bool:
        return column.source_id in self.ingest_ids and column.transform in TIMES


@dataclass(frozen=True, slots=True)
class PartitionTuple:
    """A file's partition: the spec's `by`, and values by column, None for null."""

    by: str
    values: tuple[bytes | None, ...]


def values_to_json(values: tuple[bytes | None, ...]) -> list[str | None]:
    return [None if each is None else b64encode(each).decode("ascii") for each in values]


def values_from_json(values: Sequence[str | None]) -> tuple[bytes | None, ...]:
    return tuple(None if each is None else b64decode(each) for each in values)
