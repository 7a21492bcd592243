"""Snapshots that the owner's `history.expire.*` keep, as in Iceberg's expiry. Ages of refs are ignored."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Self

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH

from catalog.iceberg.lineage import history

MIN_SNAPSHOTS: Final = "history.expire.min-snapshots-to-keep"
MAX_AGE: Final = "history.expire.max-snapshot-age-ms"

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRetention:
    """`least` newest snapshots of `main` stay, and ones up to `age_ms`. With `unreadable` properties all stay."""

    least: int | None = None
    age_ms: int | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, metadata: TableMetadata) -> Self:
        """Settings of the branch `main` override the properties, as in Iceberg."""
        properties = metadata.properties
        main = metadata.refs.get(MAIN_BRANCH)
        least, age_ms = _number(properties, MIN_SNAPSHOTS), _number(properties, MAX_AGE)
        given = {MIN_SNAPSHOTS: least, MAX_AGE: age_ms}
        return cls(
            least=least if main is None or main.min_snapshots_to_keep is None else main.min_snapshots_to_keep,
            age_ms=age_ms if main is None or main.max_snapshot_age_ms is None else main.max_snapshot_age_ms,
            unreadable={key: properties[key] for key, value in given.items() if key in properties and value is None},
        )

    @property
    def settings(self) -> dict[str, str]:
        given = {MIN_SNAPSHOTS: self.least, MAX_AGE: self.age_ms}
        return {**{key: str(value) for key, value in given.items() if value is not None}, **self.unreadable}

    def kept(self, metadata: TableMetadata, *, now_ms: int) -> frozenset[int]:
        if self.unreadable:
            return frozenset(snapshot.snapshot_id for snapshot in metadata.snapshots)
        young = (
            snapshot.snapshot_id
            for snapshot in metadata.snapshots
            if self.age_ms is not None and snapshot.timestamp_ms >= now_ms - self.age_ms
        )
        newest = (
            ancestor.snapshot_id for ancestor in islice(history(metadata), min(max(0, self.least or 0), sys.maxsize))
        )
        return frozenset((*young, *newest))


def _number(properties: Mapping[str, str], key: str) -> int | None:
    value = properties.get(key)
    return int(value) if value is not None and _NUMBER.fullmatch(value) else None
