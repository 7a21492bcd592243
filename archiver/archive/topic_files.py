"""How tasks read the files of one topic."""

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
    """The store and the formats of a topic's files. Picklable.

    `mappings` are texts of `RowMapping.to_json()` by schema version, for files whose footers have none.
    """

    topic: str
    objects: ObjectStore
    formats: SegmentFormats
    mappings: Mapping[int, str]

    def row_mapping(self, version: int) -> RowMapping | None:
        """Return the mapping of a schema version, or None."""
        text = self.mappings.get(version)
        return None if text is None else row_mapping_from_text(text)

    def storage(self, *, spill: Path | None = None) -> TopicStorage:
        """Return what reading the files needs, with mappings from their footers."""
        return TopicStorage.of_store(self.objects, self.formats, KnownMappings(self.topic, self), spill=spill)
