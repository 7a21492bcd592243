"""The properties of the archiver's tables, including their owner (docs/concepts.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from pyiceberg.schema import Schema
from pyiceberg.types import StructType

from catalog.errors import NewerFormat, NotOurTable, TopicRecreated
from catalog.model import FORMAT_VERSION, TopicRow
from schema_mapping import names
from schema_mapping.columns.fixed_ids import (
    BATCH_START_ID,
    EVENT_TIMESTAMP_ID,
    FLAT_INGEST_TIMESTAMP_ID,
    INGEST_TIMESTAMP_ID,
    OFFSET_ID,
    PARTITION_ID,
)

if TYPE_CHECKING:
    from schema_mapping.superseded import Superseded

PREFIX = "archiver."
"""How the names of the archiver's own properties begin."""

FORMAT = "archiver.format-version"
TOPIC = "archiver.topic"
TOPIC_ID = "archiver.topic-id"
CLUSTER_ID = "archiver.cluster-id"
OFFSETS = "archiver.offsets"
SUPERSEDED = "archiver.superseded-columns"
"""The older columns of fields whose type changed, as JSON: by field id, the newer column, and if old values fit it."""
LEDGER_VERSION = "archiver.ledger-version"
LAST_FIELD_ID = "archiver.last-field-id"

PARTITIONED_BY = "archiver.partitioned-by"
"""The fields of the spec in a table that is partitioned by more than one time: `day(13), bucket[16](5)`."""

REPARTITIONED = "archiver.repartitioned"
"""The ids of the last changes of the partitioning by `archiver repartition`, the newest first."""

HEAD = "archiver.head"
"""The snapshot that last brought records, and its sequence number. It outlives that snapshot."""

FIRST_OFFSETS = "archiver.first-offsets"
"""Where partitions begin, as JSON by partition: everything below was retired. It never goes back."""

COMMIT_ID = "archiver.commit-id"
"""In a snapshot's summary: the ULID of the commit that made it."""
RANGES = "archiver.ranges"
"""In a snapshot's summary: the offsets by which it advanced partitions."""
LOST = "archiver.lost"
"""In a snapshot's summary: those of its offsets that the log had lost (`--accept-gap`)."""
DIGEST = "archiver.digest"
"""In a snapshot's summary: the digest of all records that it brought. `DIGEST_ALGORITHM` names the algorithm."""
DIGEST_ALGORITHM = "archiver.digest-algorithm"
REFILLED = "archiver.refilled"
"""In a refill's summary: the offsets of the records that it brought back, gaps allowed."""
REWRITE = "archiver.rewrite"
"""In a rewrite's summary: the command that rewrote files. Such a snapshot brings no records."""
REWRITTEN_DIGEST = "archiver.rewritten-digest"
"""In a rewrite's summary: the digest of all records in the new files."""
ERASED_ROWS = "archiver.erased-rows"
"""In a rewrite's summary: how many records it left out because they were to be erased."""
RETIRED_ROWS = "archiver.retired-rows"
"""In a rewrite's summary: how many records it left out because they were too old to be kept."""

MEASURED_SCALARS = 64
"""How many scalars of key and val get bounds, the first ones. More would swell the manifests."""

DELETE_OLD_METADATA = "write.metadata.delete-after-commit.enabled"

_METRICS = "write.metadata.metrics.column."
_DEFAULT_METRICS = "write.metadata.metrics.default"
_FULL = (
    PARTITION_ID,
    OFFSET_ID,
    EVENT_TIMESTAMP_ID,
    INGEST_TIMESTAMP_ID,
    BATCH_START_ID,
    FLAT_INGEST_TIMESTAMP_ID,
)
"""Other engines may have renamed these columns."""
_FIXED = {
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
    "commit.manifest-merge.enabled": "true",  # pyiceberg's default differs from Java's
    "commit.manifest.min-count-to-merge": "100",
    DELETE_OLD_METADATA: "true",
    "write.metadata.previous-versions-max": "100",
}


def first_properties(topic: TopicRow, schema: Schema, *, ledger_version: int) -> dict[str, str]:
    return {
        **_FIXED,
        **metrics_properties(schema),
        FORMAT: str(FORMAT_VERSION),
        TOPIC: topic.topic,
        **({TOPIC_ID: str(topic.topic_id)} if topic.topic_id else {}),
        CLUSTER_ID: topic.cluster_id,
        LEDGER_VERSION: str(ledger_version),
        LAST_FIELD_ID: str(schema.highest_field_id),
    }


def superseded_property(columns: Mapping[int, Superseded]) -> dict[str, str]:
    if not columns:
        return {}
    pairs = {str(old): {"by": column.by, "castable": column.is_castable} for old, column in sorted(columns.items())}
    return {SUPERSEDED: json.dumps(pairs, separators=(",", ":"))}


def superseded_of(properties: Mapping[str, str]) -> dict[int, Superseded]:
    from schema_mapping.superseded import Superseded

    pairs = json.loads(properties.get(SUPERSEDED, "{}"))
    return {int(old): Superseded(by=pair["by"], is_castable=pair["castable"]) for old, pair in pairs.items()}


def metrics_properties(schema: Schema, current: Mapping[str, str] | None = None) -> dict[str, str]:
    """Columns in `current` stay; the remaining room goes to the first scalars, shallow first."""
    scalars = tuple(_scalars(schema))
    kept = [name for name in scalars if _METRICS + name in (current or {})]
    room = MEASURED_SCALARS - len(kept)
    added = [name for name in scalars if name not in kept][: max(0, room)]
    whole = filter(None, map(schema.find_column_name, _FULL))
    modes = dict.fromkeys(kept + added, "truncate(16)") | dict.fromkeys(whole, "full")
    inherited = {name: (current or {}).get(_METRICS + name, mode) for name, mode in modes.items()}
    return {_DEFAULT_METRICS: "none"} | {_METRICS + name: mode for name, mode in inherited.items()}


def stale_metrics(schema: Schema, current: Mapping[str, str]) -> list[str]:
    """Engines refuse to change a table with one."""
    columns = set(schema.column_names)
    return sorted(key for key in current if key.startswith(_METRICS) and key.removeprefix(_METRICS) not in columns)


def owner(properties: Mapping[str, str], *, topic: str, table: str) -> TopicRow:
    """Without a registry number. Raises like `check_owner`."""
    topic_id = properties.get(TOPIC_ID)
    row = TopicRow(
        id=0,
        cluster_id=properties.get(CLUSTER_ID, ""),
        topic=topic,
        topic_id=UUID(topic_id) if topic_id else None,
        table=table,
    )
    check_owner(row, properties)
    return row


def check_owner(topic: TopicRow, properties: Mapping[str, str], *, uuid: UUID | None = None) -> None:
    """Raise NotOurTable, NewerFormat or TopicRecreated unless the table is this topic's, in a known format."""
    where = {"table": topic.table, "topic": topic.topic} | ({} if uuid is None else {"table_uuid": str(uuid)})
    if FORMAT not in properties or TOPIC not in properties:
        raise NotOurTable(
            "the table exists and was not made by the archiver: choose another `table` for the topic, or drop it",
            **where,
        )
    if not properties[FORMAT].isdecimal() or int(properties[FORMAT]) > FORMAT_VERSION:
        raise NewerFormat(
            "the table was written by a newer archiver: upgrade this one", **where, found=properties[FORMAT]
        )
    if (properties[TOPIC], properties.get(CLUSTER_ID)) != (topic.topic, topic.cluster_id):
        raise NotOurTable(
            "the table is the archive of another topic: choose another `table` for this one",
            **where,
            cluster_id=topic.cluster_id,
            archived_topic=properties[TOPIC],
            archived_cluster_id=properties.get(CLUSTER_ID),
        )
    archived = properties.get(TOPIC_ID)
    if archived and topic.topic_id and UUID(archived) != topic.topic_id:
        raise TopicRecreated(
            "the topic was deleted and created again; the table holds its predecessor: give the topic another `table`",
            **where,
            archived_topic_id=archived,
            topic_id=str(topic.topic_id),
        )


def _scalars(schema: Schema) -> Iterator[str]:
    level = [(field.name, field.field_type) for field in schema.fields if field.name in (names.KEY, names.VAL)]
    while level:
        deeper = []
        for path, kind in level:
            if kind.is_primitive:
                yield path
            elif isinstance(kind, StructType):
                deeper += [(f"{path}.{field.name}", field.field_type) for field in kind.fields]
        level = deeper
