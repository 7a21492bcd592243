"""The columns of a data file: what one schema version writes, and what a replay needs to read it back.

`RowMapping.to_json` is kept in the file's footer, the registry and the journal. So a replay of an old file works
however the schema has changed since.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
from pyiceberg.schema import Schema

from schema_mapping import names
from schema_mapping.columns.arrow import arrow_field
from schema_mapping.columns.fixed import FLAT_INGEST_FIELD, HEADERS_FIELD, KAFKA_FIELD, KEY_ID, VAL_ID
from schema_mapping.columns.iceberg import iceberg_field
from schema_mapping.columns.options import MappingOptions
from schema_mapping.errors import DescriptorError
from schema_mapping.formats import mapping_from_json
from schema_mapping.value_format import DeclaredSchema, ValueMapping

PartitionSource: TypeAlias = Literal["nested", "flat"]
"""Where the table is partitioned by: the field in `kafka`, or its copy at the top."""

FORMAT: Final = 1

_ENVELOPES: Final = ("key_envelope", "value_envelope")


@dataclass(frozen=True, kw_only=True)
class RowMapping:
    """How a record becomes a row: the mappings of key and value, and their schema version.

    `partition_source` is "flat" if the table has a top-level copy of `kafka.ingest_timestamp`. `key_envelope` and
    `value_envelope` are put before messages that were written without an envelope when a replay is coerced; None means
    that none may be added.
    """

    key: ValueMapping
    value: ValueMapping
    schema_version: int
    partition_source: PartitionSource = "nested"
    key_envelope: bytes | None = None
    value_envelope: bytes | None = None

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of a data file; every field has its id."""
        return pa.schema(
            table_fields(
                arrow_field(names.KEY, self.key.arrow_type, KEY_ID),
                arrow_field(names.VAL, self.value.arrow_type, VAL_ID),
                self.partition_source,
            )
        )

    @property
    def key_schema(self) -> DeclaredSchema | None:
        """The key's schema with its envelope; None if keys have no schema."""
        return self.key.schema(self.key_envelope)

    @property
    def value_schema(self) -> DeclaredSchema | None:
        """The value's schema with its envelope; None if values have no schema."""
        return self.value.schema(self.value_envelope)

    @property
    def column_ids(self) -> frozenset[int]:
        """Field ids of all columns of key and value that rows write."""
        return self.key.column_ids | self.value.column_ids

    @property
    def options(self) -> MappingOptions:
        """The options that key and value were mapped with."""
        return self.value.options or self.key.options or MappingOptions()

    def to_json(self) -> dict[str, Any]:
        """A JSON object with all that makes the mapping: descriptors, ids, options, version, envelopes if any."""
        envelopes = {name: getattr(self, name) for name in _ENVELOPES if getattr(self, name) is not None}
        return {
            "format": FORMAT,
            "schema_version": self.schema_version,
            "partition_source": self.partition_source,
            "key": self.key.to_json(),
            "value": self.value.to_json(),
            **{name: envelope.hex() for name, envelope in envelopes.items()},
        }

    @property
    def text(self) -> str:
        """The JSON object as compact text, as footers, the registry and the journal keep it."""
        return json.dumps(self.to_json(), separators=(",", ":"))


def row_mapping_from_text(text: str) -> RowMapping:
    """Reads a mapping back from its `text`. Raises what `row_mapping_from_json` raises."""
    return row_mapping_from_json(json.loads(text))


def part_formats(text: str) -> dict[str, str]:
    """The formats of `key` and `value` in a mapping's `text`."""
    data = json.loads(text)
    return {part: str(data[part]["format"]) for part in ("key", "value")}


def row_mapping_from_json(data: dict[str, Any]) -> RowMapping:
    """Reads a mapping back from its `to_json`.

    Raises DescriptorError if the data were written in a newer form than this code knows, or if a value format isn't
    known.
    """
    if data.get("format") != FORMAT:
        raise DescriptorError("a row mapping written by a newer archiver; upgrade this one", format=data.get("format"))
    return RowMapping(
        key=mapping_from_json(data["key"]),
        value=mapping_from_json(data["value"]),
        schema_version=data["schema_version"],
        partition_source=data["partition_source"],
        **{name: bytes.fromhex(data[name]) for name in _ENVELOPES if name in data},
    )


def table_fields(key: pa.Field, val: pa.Field, partition_source: PartitionSource) -> list[pa.Field]:
    """The columns of a table or file, in order."""
    flat = [FLAT_INGEST_FIELD] if partition_source == "flat" else []
    return [key, val, HEADERS_FIELD, KAFKA_FIELD, *flat]


def table_schema(key: pa.Field, val: pa.Field, partition_source: PartitionSource) -> Schema:
    """The Iceberg schema of a table with these columns."""
    return Schema(*(iceberg_field(field) for field in table_fields(key, val, partition_source)))
