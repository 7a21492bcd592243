"""How tasks rewrite a topic's files. Picklable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from archiver.archive.topic_files import TopicFiles
from archiver.errors import ConfigError
from archiver.files.partitioned_rows import PENDING_BYTES
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentLayout

if TYPE_CHECKING:  # tasks need none of it
    from archiver.config import Config
    from catalog.iceberg.archive_table import ArchiveTable
    from schema_mapping.columns.ledger import SchemaVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTarget(TopicFiles):
    """`column_names` and `bloom_filters` (false positive rates) are by field id.

    `pending_bytes` (`partition_memory`) bounds buffered rows per task.
    """

    table_properties: Mapping[str, str]
    bloom_filters: Mapping[int, float]
    spool: Path
    column_names: Mapping[int, str] = field(default_factory=dict)
    pending_bytes: int = PENDING_BYTES
    plain_encodings: bool = False

    @classmethod
    def of(
        cls, table: ArchiveTable, versions: Iterable[SchemaVersion], config: Config, formats: SegmentFormats
    ) -> Self:
        return cls(
            topic=table.topic.topic,
            objects=ObjectStore.of_table(table.iceberg),
            formats=formats,
            mappings={version.version: version.mapping for version in versions},
            table_properties=dict(table.properties),
            bloom_filters=table.bloom_filters,
            spool=config.archive.spool,
            column_names={field_id: table.schema.find_field(field_id).name for field_id in table.schema.field_ids},
            pending_bytes=config.archive.partition_memory,
            plain_encodings=_is_plain(config, table.topic.topic),
        )

    def layout(self, schema: pa.Schema, version: int, mappings: Mapping[int, str]) -> SegmentLayout:
        """`mappings` must have the versions of the rows, and `version`."""
        return SegmentLayout(
            schema=schema,
            mapping=mappings[version],
            schema_version=version,
            table_properties=self.table_properties,
            bloom_filters=self.bloom_filters,
            other_mappings={number: text for number, text in mappings.items() if number != version},
            plain_encodings=self.plain_encodings,
        )


def _is_plain(config: Config, topic: str) -> bool:
    try:
        return config.topic(topic).encodings == "plain"
    except ConfigError:  # no section speaks for a topic that is no longer archived
        return False
