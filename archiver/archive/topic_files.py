"""How tasks read one topic's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import TopicStorage
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from schema_mapping.row import RowMapping, row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFiles:
    """Picklable. `mappings` are `RowMapping.to_json()` by schema version, for files without any."""

    topic: str
    objects: ObjectStore
    formats: SegmentFormats
    mappings: Mapping[int, str]

    def row_mapping(self, version: int) -> RowMapping | None:
        text = self.mappings.get(version)
        return None if text is None else row_mapping_from_text(text)

    def storage(self, *, spill: Path | None = None) -> TopicStorage:
        return TopicStorage.of_store(self.objects, self.formats, KnownMappings(self.topic, self), spill=spill)
