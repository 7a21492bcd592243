"""How rows of clients become records: by the mapping that decodes them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.types as kinds

from archiver.config import TopicConfig
from archiver.errors import ConfigError
from schema_mapping import names
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEncoding:
    """`refusal` is why clients can send records only, if so. `key_column` has the keys."""

    row: RowMapping
    key_column: str | None = None
    refusal: str | None = None

    @classmethod
    def of(cls, topic: TopicConfig, row: RowMapping) -> Self:
        refusal = None
        if row.value_schema is None:
            refusal = "the topic's values have no schema"
        elif any(part.is_wrapped and not part.gets_envelopes for part in (topic.key, topic.value)):
            refusal = "the topic's keys or values begin with an id of the schema registry, or a schema's fingerprint"
        elif topic.key_column is not None and not can_be_key(row.value.arrow_type, topic.key_column):
            refusal = f"the schema has no column {topic.key_column} of texts, bytes or whole numbers for the keys"
        return cls(row=row, key_column=topic.key_column, refusal=refusal)


def can_be_key(mapped: pa.StructType, name: str) -> bool:
    index = mapped.get_field_index(name)
    if index < 0 or name in names.RESERVED:
        return False
    kind = mapped.field(index).type
    return bool(kinds.is_string(kind) or kinds.is_binary(kind) or kinds.is_integer(kind))


def check_key_column(topic: TopicConfig, row: RowMapping) -> None:
    """Raise ConfigError if `key` names a column that can't be the key."""
    if topic.key_column is None or can_be_key(row.value.arrow_type, topic.key_column):
        return
    mapped = row.value.arrow_type
    raise ConfigError(
        f"`key` must name a column of the schema at its top, of texts, bytes or whole numbers, and names"
        f" {topic.key_column!r}",
        topic=topic.name,
        columns=[field.name for field in mapped if can_be_key(mapped, field.name)],
    )
