"""The catalog's answer to a load, reusing parts of earlier answers: parsing columns takes most of the time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any, Final

from pyiceberg.catalog.rest import TableResponse
from pyiceberg.schema import Schema
from pyiceberg.table import Table

_KEPT: Final = 64
"""How many schemas are kept. Tables with the same columns share one; a large one takes a megabyte."""


def table_of(text: str, known: Table | None = None) -> TableResponse:
    """Reuse unchanged parts of `known` of the same metadata file.

    Raises ValidationError for anything but an answer of the REST protocol.
    """
    with suppress(ValueError):
        answer = json.loads(text)
        metadata = answer.get("metadata") if isinstance(answer, dict) else None
        if isinstance(metadata, dict):
            if known is not None and known.metadata_location and _is_of(answer, metadata, known):
                return TableResponse.model_validate({**answer, "metadata": known.metadata})
            return TableResponse.model_validate({**answer, "metadata": _with_kept_schemas(metadata)})
    return TableResponse.model_validate_json(text)


def _is_of(told: Mapping[str, Any], metadata: Mapping[str, Any], known: Table) -> bool:
    """Some catalogs number metadata files per table, so locations repeat."""
    current = known.metadata
    return (
        told.get("metadata-location") == known.metadata_location
        and metadata.get("table-uuid") == str(current.table_uuid)
        and metadata.get("last-updated-ms") == current.last_updated_ms
        and metadata.get("current-snapshot-id") in {current.current_snapshot_id, current.current_snapshot_id or -1}
    )


def _with_kept_schemas(metadata: Mapping[str, Any]) -> dict[str, Any]:
    schemas = metadata.get("schemas")
    if not isinstance(schemas, list):
        return dict(metadata)
    return {**metadata, "schemas": [_schema(json.dumps(schema)) for schema in schemas]}


@lru_cache(maxsize=_KEPT)
def _schema(text: str) -> Schema:
    """Fill the cached properties: threads share the schema, and can't copy it while one adds some."""
    schema = Schema.model_validate_json(text)
    for name, member in vars(Schema).items():
        if isinstance(member, cached_property):
            getattr(schema, name)
    return schema
