"""The catalog's answer to who loads a table. What it has in common with earlier answers isn't made from JSON again.

That is most of the work: a table's columns are some hundred objects, each of which pydantic checks.
"""

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
    """Read the answer. A metadata file never changes; so what it had is taken from `known`, if that is of it.

    Raises pydantic's ValidationError where it isn't an answer of the REST protocol.
    """
    with suppress(ValueError):
        told = json.loads(text)
        metadata = told.get("metadata") if isinstance(told, dict) else None
        if isinstance(metadata, dict):
            if known is not None and known.metadata_location and _is_of(told, metadata, known):
                return TableResponse.model_validate({**told, "metadata": known.metadata})
            return TableResponse.model_validate({**told, "metadata": _with_kept_schemas(metadata)})
    return TableResponse.model_validate_json(text)


def _is_of(told: Mapping[str, Any], metadata: Mapping[str, Any], known: Table) -> bool:
    """Whether an answer is about this very metadata file. Some catalogs number them, for each table anew."""
    here = known.metadata
    return (
        told.get("metadata-location") == known.metadata_location
        and metadata.get("table-uuid") == str(here.table_uuid)
        and metadata.get("last-updated-ms") == here.last_updated_ms
        and metadata.get("current-snapshot-id") in {here.current_snapshot_id, here.current_snapshot_id or -1}
    )


def _with_kept_schemas(metadata: Mapping[str, Any]) -> dict[str, Any]:
    schemas = metadata.get("schemas")
    if not isinstance(schemas, list):
        return dict(metadata)
    return {**metadata, "schemas": [_schema(json.dumps(each)) for each in schemas]}


@lru_cache(maxsize=_KEPT)
def _schema(text: str) -> Schema:
    """A schema that has already what pyiceberg works out when it is first used.

    Threads share it, and Python can't copy an object while another thread adds to it.
    """
    schema = Schema.model_validate_json(text)
    for name, member in vars(Schema).items():
        if isinstance(member, cached_property):
            getattr(schema, name)
    return schema
