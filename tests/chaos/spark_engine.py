"""Spark as the other engine, by SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyiceberg.table import Table

from tests.chaos.other_engine import Cut, LiveFile, OtherEngine, Place, Write


class SparkOtherEngine(OtherEngine):
    """Falls back to pyiceberg for changes that Spark's SQL lacks."""

    def __init__(self, load: Callable[[], Table], sql: Callable[[str], Any], *, write: Write | None = None) -> None:
        super().__init__(load, write=write)
        self._sql = sql

    def delete_copied(self, places: Iterable[Place], *, branch: str = "main") -> None:
        if branch == "main":
            self._delete(places, "copy-on-write")
        else:
            super().delete_copied(places, branch=branch)

    def delete_positions(self, places: Iterable[Place], *, granular: bool = True) -> None:
        granularity = "file" if granular else "partition"
        self._alter(f"'write.delete.granularity' = '{granularity}'")
        self._delete(places, "merge-on-read")

    def rewrite(self, cut: Cut | None = None, *, chosen: Callable[[LiveFile], bool] = lambda _: True) -> None:
        if cut is not None:
            super().rewrite(cut, chosen=chosen)
            return
        name = self._name()
        self._sql(
            f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        )

    def rename_column(self, path: tuple[str, ...], name: str) -> None:
        self._sql(f"ALTER TABLE lake.{self._name()} RENAME COLUMN {'.'.join(path)} TO {name}")

    def _delete(self, places: Iterable[Place], mode: str) -> None:
        by_partition: dict[int, list[str]] = {}
        for partition, offset in places:
            by_partition.setdefault(partition, []).append(str(offset))
        self._alter(f"'write.delete.mode' = '{mode}'")
        chosen = " OR ".join(
            f"(kafka.partition = {partition} AND kafka.offset IN ({', '.join(offsets)}))"
            for partition, offsets in by_partition.items()
        )
        self._sql(f"DELETE FROM lake.{self._name()} WHERE {chosen}")

    def _alter(self, properties: str) -> None:
        self._sql(f"ALTER TABLE lake.{self._name()} SET TBLPROPERTIES ({properties})")

    def _name(self) -> str:
        name = ".".join(self.table.name()[-2:])
        self._sql(f"REFRESH TABLE lake.{name}")
        return name
