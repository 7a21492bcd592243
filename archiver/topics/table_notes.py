"""Notes on a table before its first record."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.schema import Schema

from archiver.topics.catalog_upkeep import upkeep_note
from archiver.topics.engine_limits import exceeded_limits


def table_notes(schema: Schema, catalog: Mapping[str, str]) -> tuple[str, ...]:
    limits = tuple(limit.text for limit in exceeded_limits(schema))
    return limits if (note := upkeep_note(catalog)) is None else (*limits, note)
