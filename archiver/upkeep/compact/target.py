"""What the tasks of one topic's compaction share. A value that pickles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast

from archiver.files.rotation import PartitionBy, partition_folder
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from catalog.partitioning import Partitioning
from schema_mapping.row import RowMapping, row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlaces:
    """The partitions that files move to: those of the table's current spec, whose id is `spec_id`.

    `data_location` is the folder above the partition folders. A task keeps `pending_bytes` of rows that wait for their
    files in memory, which is `partition_memory`, and ends files before they take more than about `room` in the spool.
    """

    spec_id: int
    partitioning: Partitioning
    data_location: str
    pending_bytes: int
    room: int

    @property
    def by(self) -> str:
        """The transforms and the field ids of their columns."""
        return self.partitioning.by

    def folder(self, time_value: int | None) -> str:
        """The folder of a partition of the ingest timestamp. Values of columns are in no path."""
        time = self.partitioning.time
        if time is None or time_value is None:
            return self.data_location
        return f"{self.data_location}/{partition_folder(time.name, time_value, cast('PartitionBy', time.transform))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTarget:
    """How new files are written.

    `mappings` are texts of `RowMapping.to_json()` by schema version, for files whose footers have none. `column_names`
    are the table's, by field id. `bloom_filters` are rates of false positives by field id. Rows that wait for others
    take at most `held_bytes` of memory. `places` are the partitions that groups of other specs move to, if any do.
    """

    topic: str
    mappings: Mapping[int, str]
    column_names: Mapping[int, str]
    table_properties: Mapping[str, str]
    bloom_filters: Mapping[int, float]
    objects: ObjectStore
    formats: SegmentFormats
    spool: Path
    target_bytes: int
    held_bytes: int
    places: NewPlaces | None = None

    def for_tasks(self, at_once: int) -> Self:
        """The target of so many tasks that share the spool."""
        places = self.places
        return replace(self, places=None if places is None else replace(places, room=places.room // at_once))

    def row_mapping(self, version: int) -> RowMapping | None:
        """The mapping of a schema version. None where it isn't known."""
        text = self.mappings.get(version)
        return None if text is None else row_mapping_from_text(text)
