"""What the tasks of one topic's compaction share. A value that pickles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from schema_mapping.row import RowMapping, row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTarget:
    """How new files are written.

    `mappings` are texts of `RowMapping.to_json()` by schema version, for files whose footers have none. `column_names`
    are the table's, by field id. `bloom_filters` are rates of false positives by field id. Rows that wait for others
    take at most `held_bytes` of memory.
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

    def row_mapping(self, version: int) -> RowMapping | None:
        """The mapping of a schema version. None where it isn't known."""
        text = self.mappings.get(version)
        return None if text is None else row_mapping_from_text(text)
