"""The columns of a data file: what one schema version writes, and what replay needs to read it back.

`to_json` goes into the file's footer, the registry and the journal, so evolution never breaks a replay.
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

FORMAT: Final = 1

_ENVELOPES: Final = ("key_envelope", "value_envelope")


@dataclass(frozen=True, kw_only=True)
class RowMapping:
    """How a record becomes a row: the mappings of key and value, and the schema version they make up.

    `partition_source` is "flat" where the table has a top-level copy of `kafka.ingest_timestamp`. `key_envelope` and
    `value_envelope` are what a coerced replay puts before messages that came without; None where none may.
    """

    key: ValueMapping
    value: ValueMapping
    schema_version: int
    partition_source: PartitionSource = "nested"
    key_envelope: bytes | None = None
    value_envelope: bytes | None = None

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of a data file, every field with its id."""
        return pa.schema(
            table_fields(
                arrow_field(names.KEY, self.key.arrow_type, KEY_ID),
                arrow_field(names.VAL, self.value.arrow_type, VAL_ID),
                self.partition_source,
            )
        )

    @property
    def key_schema(self) -> DeclaredSchema | None:
        """The key's schema with its envelope; None where keys have none."""
        return self.key.schema(self.key_envelope)

    @property
    def value_schema(self) -> DeclaredSchema | None:
        """The value's schema with its envelope; None where values have none."""
        return self.value.schema(self.value_envelope)

    @property
    def column_ids(self) -> frozenset[int]:
        """Field ids of all columns of key and value that rows are written to."""
        return self.key.column_ids | self.value.column_ids

    @property
    def options(self) -> MappingOptions:
        """The options that key and value were mapped with."""
        return self.value.options or self.key.options or MappingOptions()

    def to_json(self) -> dict[str, Any]:
        """A JSON object of all that makes the mapping: descriptors, ids, options, version, envelopes if any."""
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
        """The JSON object as compact text, as footers, registry and journal keep it."""
        return json.dumps(self.to_json(), separators=(",", ":"))


def row_mapping_from_text(text: str) -> RowMapping:
    """The mapping whose `text` this is. Raises as `row_mapping_from_json` does."""
    return row_mapping_from_json(json.loads(text))


def row_mapping_from_json(data: dict[str, Any]) -> RowMapping:
    """The mapping of the version that wrote `data`.

    Raises DescriptorError for a form that is newer than this code, and for a value format that isn't known here.
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
    """The columns of a table or file, in their order."""
    flat = [FLAT_INGEST_FIELD] if partition_source == "flat" else []
    return [key, val, HEADERS_FIELD, KAFKA_FIELD, *flat]


def table_schema(key: pa.Field, val: pa.Field, partition_source: PartitionSource) -> Schema:
    """The Iceberg schema of a table with these columns."""
    return Schema(*(iceberg_field(field) for field in table_fields(key, val, partition_source)))
