"""Decodes samples, and reports values that would stay raw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from archiver.config import Config, TopicConfig
from archiver.errors import BadSchema
from archiver.kafka import BrokerClient
from archiver.schemas import EnvelopeReader, decode_in_parts, decode_values
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.setup.findings import CheckOutcome, Finding, failure
from archiver.setup.read_schemas import read_schemas
from archiver.setup.samples import RecentRecords, recent_records
from schema_mapping import names
from schema_mapping.errors import ContextError
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ValueMapping

VALUES: Final = "Values"
SAMPLED: Final = 1_000
"""How many of the last records of a topic are decoded."""
MOST_TOPICS: Final = 100

NOT_RESTORED: Final = "columns can't restore the bytes"
_WORDS: Final[Mapping[str, str]] = {
    "bad_schema": "the schema that they name can't be read",
    "unknown_schema_id": "the schema registry doesn't have the id that they name, or it is of another format",
    "unknown_schema_guid": "the schema registry doesn't have the GUID that they name, or it is of another format",
    "other_message": "they are of a message that the topic's section doesn't list",
    "ambiguous_message": "their message indexes may mean two listed messages",
    "unknown_fingerprint": "no schema of the topic has the fingerprint that they name",
    "bad_envelope": "they don't begin with the envelope that `wire_format` names",
    "bad_header": "the header with their schema's id is damaged",
    "foreign_header": "headers of Apicurio's serializers name their schema, which `coerce` doesn't read",
    "bad_json": "they aren't JSON",
    "other_type": "they, or a part of them, are of another type than the JSON Schema says",
}
_NO_MESSAGE: Final = "the bytes are no message of the configured schema"


@dataclass(slots=True)
class RawValues:
    partition: int
    offset: int
    first: bytes
    count: int = 0
    schema_id: int | None = field(init=False)

    def __post_init__(self) -> None:
        has_id = self.first[:1] == b"\0" and len(self.first) > 4  # noqa: PLR2004 - magic byte and id
        self.schema_id = int.from_bytes(self.first[1:5], "big") if has_id else None


def look_at_values(config: Config, samples: int = SAMPLED) -> Iterator[Finding]:
    if samples == 0:
        yield Finding(part=VALUES, outcome=CheckOutcome.SKIPPED, detail="no records are sampled")
        return
    if not config.has_kafka:
        yield Finding(part=VALUES, outcome=CheckOutcome.SKIPPED, detail="no topic comes from Kafka")
        return
    try:
        with BrokerClient(config.kafka) as brokers:
            yield from _of_topics(config, brokers, samples)
    except ContextError:
        yield Finding(part=VALUES, outcome=CheckOutcome.SKIPPED, detail="Kafka doesn't answer")


def _of_topics(config: Config, brokers: BrokerClient, samples: int) -> Iterator[Finding]:
    existing = frozenset(brokers.topics())
    topics = config.select_kafka(tuple(existing), may_be_none=True) if config.sections else ()
    typed = [topic for topic in topics if topic.name in existing and (topic.key.has_schema or topic.value.has_schema)]
    if not typed:
        yield Finding(part=VALUES, outcome=CheckOutcome.SKIPPED, detail="no topic has a schema")
    failed: dict[str, ContextError] = {}
    for topic, schemas, assigned in read_schemas(config, typed[:MOST_TOPICS], failed):
        try:
            records = list(recent_records(brokers, topic.name, samples))
        except ContextError:
            continue
        yield from _of_topic(records, topic, schemas, assigned.row)
    for name, error in failed.items():
        if name not in config.sections:  # no other check reads the schemas of topics of a pattern
            yield failure(VALUES, error, f"topic {name}")
    if len(typed) > MOST_TOPICS:
        detail = f"not sampled: {len(typed) - MOST_TOPICS:,} more topics"
        yield Finding(part=VALUES, outcome=CheckOutcome.SKIPPED, detail=detail)


def _of_topic(
    records: Sequence[RecentRecords], topic: TopicConfig, schemas: TopicSchemas, row: RowMapping
) -> Iterator[Finding]:
    subject = f"topic {topic.name}"
    try:
        for part, mapping, envelope in (
            ("key", row.key, schemas.key_envelope),
            ("value", row.value, schemas.value_envelope),
        ):
            settings = topic.key if part == "key" else topic.value
            if settings.has_schema:
                yield decoded(subject, part, records, mapping, envelope)
    except ContextError as error:
        yield failure(VALUES, error, subject)


def decoded(
    subject: str, part: str, records: Sequence[RecentRecords], mapping: ValueMapping, envelope: EnvelopeReader | None
) -> Finding:
    def decode(batch: pa.RecordBatch) -> pa.StructArray:
        return decode_values(mapping, batch.column(part), envelope, headers=batch.column("headers"))

    raw: dict[str, RawValues] = {}
    total = 0
    for recent in records:
        for batch, rows in decode_in_parts(recent.records, decode):
            values = batch.column(part)
            total += len(values) - values.null_count
            _count(raw, recent.partition, batch.column("offset"), values, rows)
    if not total:
        return Finding(part=VALUES, subject=subject, detail=f"the sample has no {part}s")
    kept = sum(kind.count for kind in raw.values())
    if not kept:
        return Finding(part=VALUES, subject=subject, detail=f"all of {total:,} sampled {part}s decode")
    reasons = "; ".join(_reason(code, kind, envelope) for code, kind in raw.items())
    detail = f"{kept:,} of {total:,} sampled {part}s would stay raw: {reasons}"
    return Finding(part=VALUES, subject=subject, outcome=CheckOutcome.WARNING, detail=detail)


def _count(
    raw: dict[str, RawValues], partition: int, offsets: pa.Array, values: pa.Array, rows: pa.StructArray
) -> None:
    kept = rows.field(names.RAW).is_valid().to_pylist()
    errors = rows.field(names.ERR).to_pylist()
    for row, value in enumerate(values.to_pylist()):
        if value is None or not (kept[row] or errors[row]):
            continue
        code = errors[row] or NOT_RESTORED
        raw.setdefault(code, RawValues(partition, offsets[row].as_py(), value)).count += 1


def _reason(code: str, values: RawValues, envelope: EnvelopeReader | None) -> str:
    at = f"first in partition {values.partition} at offset {values.offset}"
    if code == NOT_RESTORED:
        return f"{values.count} because {code} ({at})"
    words = _WORDS.get(code.partition("@")[0], _NO_MESSAGE)
    if envelope is not None and values.schema_id is not None and code.startswith("bad_schema"):
        try:
            envelope.learned([values.schema_id])
        except BadSchema as error:
            words = str(error)
    elif values.schema_id is not None and code in {"unknown_schema_id@1", "other_message@5"}:
        words += f", such as id {values.schema_id}"
    return f"{values.count} {code}: {words} ({at})"
