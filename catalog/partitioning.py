"""Partitioning as plain values.

Transforms as in Iceberg's metadata: `identity`, `bucket[16]`, `truncate[4]`, `year` to `hour`.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from schema_mapping.columns.fixed_ids import FLAT_INGEST_TIMESTAMP_ID, INGEST_TIMESTAMP_ID

MOST_BUCKETS: Final = 1_000_000
MOST_COLUMNS: Final = 8
_INT_BYTES: Final = 4
INGEST_IDS: Final = frozenset((INGEST_TIMESTAMP_ID, FLAT_INGEST_TIMESTAMP_ID))


@dataclass(frozen=True, slots=True)
class Transform:
    """pyiceberg_core has the function of values by this name.

    `suffix` ends the names of partition columns. `unit` is numpy's, of a time.
    """

    name: str
    suffix: str
    takes_width: bool = False
    unit: str = ""


TRANSFORMS: Final[Mapping[str, Transform]] = {
    transform.name: transform
    for transform in (
        Transform("identity", ""),
        Transform("bucket", "_bucket", takes_width=True),
        Transform("truncate", "_trunc", takes_width=True),
        Transform("year", "_year", unit="Y"),
        Transform("month", "_month", unit="M"),
        Transform("day", "_day", unit="D"),
        Transform("hour", "_hour", unit="h"),
    )
}

_TERM: Final = re.compile(r"\s*(?P<function>[a-z]+)\s*\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<source>[^\s(),]+)\s*\)\s*")
_PATH: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_FIELD: Final = re.compile(r"([^\s(]+)\((\d+)\)")
_ROOTS: Final = ("key.", "val.", "kafka.", "ingest_timestamp")
_EXAMPLES: Final = (
    "write 'hour', 'day', 'month' or 'year', or a list such as "
    '["day", "val.customer.region", "bucket(16, key.__raw__)", "truncate(4, val.sku)"]'
)


def is_time(transform: str) -> bool:
    return transform in TRANSFORMS and bool(TRANSFORMS[transform].unit)


def function_of(transform: str) -> tuple[str, str]:
    """Split `bucket[16]` into function and width, which may be empty."""
    function, _, width = transform.rstrip("]").partition("[")
    return function, width


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """`source` is a dotted column, None for the ingest timestamp."""

    transform: str
    source: str | None

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse `day`, `val.region`, `bucket(16, key.__raw__)`. Raises ValueError."""
        bare = text.strip()
        if is_time(bare):
            return cls(bare, None)
        if _is_column(bare):
            return cls("identity", bare)
        match = _TERM.fullmatch(text)
        if match is None or not _is_column(match["source"]):
            raise ValueError(f"{text!r} is no partition: {_EXAMPLES}")
        function, width = match["function"], match["width"]
        if function not in TRANSFORMS:
            raise ValueError(f"{text!r}: there is no transform {function!r}; {_EXAMPLES}")
        if not TRANSFORMS[function].takes_width:
            if width is not None:
                raise ValueError(f"{text!r}: {function} takes a column and no number")
            return cls(function, match["source"])
        if width is None or not 1 <= int(width) <= MOST_BUCKETS:
            raise ValueError(f"{text!r}: {function} takes a number from 1 to {MOST_BUCKETS} and a column")
        return cls(f"{function}[{int(width)}]", match["source"])

    def __str__(self) -> str:
        if self.source is None:
            return self.transform
        if self.transform == "identity":
            return self.source
        function, width = function_of(self.transform)
        return f"{function}({width}, {self.source})" if width else f"{function}({self.source})"


def _is_column(text: str) -> bool:
    return text.startswith(_ROOTS) and _PATH.fullmatch(text) is not None


def terms_of(texts: Sequence[str]) -> tuple[PartitionTerm, ...]:
    """Raises ValueError for wrong or repeated terms."""
    if not 1 <= len(texts) <= MOST_COLUMNS:
        raise ValueError(f"give one to {MOST_COLUMNS} partitions: {_EXAMPLES}")
    terms = tuple(PartitionTerm.of(text) for text in texts)
    if twice := next((term for term in terms if terms.count(term) > 1), None):
        raise ValueError(f"{str(twice)!r} is named twice")
    return terms


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    name: str
    transform: str
    source_id: int

    @property
    def by(self) -> str:
        return f"{self.transform}({self.source_id})"

    @property
    def is_ingest_time(self) -> bool:
        return self.source_id in INGEST_IDS and is_time(self.transform)


@dataclass(frozen=True, slots=True)
class Partitioning:
    columns: tuple[PartitionColumn, ...]

    @property
    def by(self) -> str:
        return ", ".join(column.by for column in self.columns)

    @property
    def time(self) -> PartitionColumn | None:
        return next((column for column in self.columns if column.is_ingest_time), None)

    @property
    def is_time_alone(self) -> bool:
        return len(self.columns) == 1 and self.time is not None


@dataclass(frozen=True, slots=True)
class PartitionTuple:
    """A file's partition: the spec's `by`, and values in single-value serialization, None for null.

    `by` is None in descriptions by old archivers, which had times alone. `values` is None in the journal, which has no
    values of columns.
    """

    by: str | None
    values: tuple[bytes | None, ...] | None

    @classmethod
    def of_time(cls, value: int, by: str | None = None) -> Self:
        """`value` counts hours, days, months or years since 1970."""
        width = _INT_BYTES if -(1 << 31) <= value < 1 << 31 else 2 * _INT_BYTES  # old descriptions may have any number
        return cls(by, (value.to_bytes(width, "little", signed=True),))

    @property
    def _times(self) -> list[bool]:
        fields = _FIELD.findall(self.by or "")
        return [int(source) in INGEST_IDS and is_time(transform) for transform, source in fields]

    @property
    def is_time_alone(self) -> bool:
        return self.by is None or self._times == [True]

    @property
    def is_one_time(self) -> bool:
        return self.is_time_alone and self.values != (None,)

    @property
    def time_value(self) -> int:
        """0 without a partition of the ingest timestamp."""
        times = [True] if self.by is None else self._times
        value = self.values[times.index(True)] if self.values is not None and True in times else None
        return 0 if value is None else int.from_bytes(value, "little", signed=True)

    def to_json(self) -> dict[str, Any]:
        plain = {"partition_value": self.time_value, "partitioned_by": self.by}
        if self.values is None or self.is_one_time:
            return plain
        return plain | {"partition_values": values_to_json(self.values)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        by, values = value.get("partitioned_by"), value.get("partition_values")
        if values is not None:
            return cls(by, values_from_json(values))
        kept = cls.of_time(value["partition_value"], by)
        return kept if kept.is_time_alone else cls(by, None)


UNPLACED: Final = PartitionTuple.of_time(0)
"""The partition of a file that takes its partition from the file it replaces, or from its bounds."""


def values_to_json(values: tuple[bytes | None, ...]) -> list[str | None]:
    return [None if value is None else b64encode(value).decode("ascii") for value in values]


def values_from_json(values: Sequence[str | None]) -> tuple[bytes | None, ...]:
    return tuple(None if value is None else b64decode(value) for value in values)
