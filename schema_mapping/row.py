"""The columns of a data file, by one schema version.

`RowMapping.to_json` is kept in footers, registry and journal, so old files stay readable.
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
"""The column that the table is partitioned by: the field in `kafka`, or its copy at the top."""

FORMAT: Final = 1

_ENVELOPES: Final = ("key_envelope", "value_envelope")


@dataclass(frozen=True, kw_only=True)
class RowMapping:
    """`partition_source` "flat": the table copies `kafka.ingest_timestamp` to the top.

    Envelopes are for messages without one in a coerced replay.
    """

    key: ValueMapping
    value: ValueMapping
    schema_version: int
    partition_source: PartitionSource = "nested"
    key_envelope: bytes | None = None
    value_envelope: bytes | None = None

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema(
            table_fields(
                arrow_field(names.KEY, self.key.arrow_type, KEY_ID),
                arrow_field(names.VAL, self.value.arrow_type, VAL_ID),
                self.partition_source,
            )
        )

    @property
    def key_schema(self) -> DeclaredSchema | None:
        return self.key.schema(self.key_envelope)

    @property
    def value_schema(self) -> DeclaredSchema | None:
        return self.value.schema(self.value_envelope)

    @property
    def column_ids(self) -> frozenset[int]:
        return self.key.column_ids | self.value.column_ids

    @property
    def options(self) -> MappingOptions:
        return self.value.options or self.key.options or MappingOptions()

    def to_json(self) -> dict[str, Any]:
        """Everything that makes the mapping."""
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
        return json.dumps(self.to_json(), separators=(",", ":"))


def row_mapping_from_text(text: str) -> RowMapping:
    """Raises the errors of `row_mapping_from_json`."""
    return row_mapping_from_json(json.loads(text))


def part_formats(text: str) -> dict[str, str]:
    data = json.loads(text)
    return {part: str(data[part]["format"]) for part in ("key", "value")}


def row_mapping_from_json(data: dict[str, Any]) -> RowMapping:
    """Raises DescriptorError for a newer form or an unknown value format."""
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
    flat = [FLAT_INGEST_FIELD] if partition_source == "flat" else []
    return [key, val, HEADERS_FIELD, KAFKA_FIELD, *flat]


def table_schema(key: pa.Field, val: pa.Field, partition_source: PartitionSource) -> Schema:
    return Schema(*(iceberg_field(field) for field in table_fields(key, val, partition_source)))
