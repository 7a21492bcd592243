"""Checks of what engines and the catalog will do with the tables, before the first record is archived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archiver.config import Config
from archiver.schemas import mapping_options
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.setup.findings import Finding, Outcome
from archiver.setup.name_checks import topics_of
from archiver.topics.catalog_upkeep import upkeep_note
from archiver.topics.engine_limits import exceeded_limits
from schema_mapping import LedgerState, assign
from schema_mapping.errors import ContextError

ENGINES: Final = "Engines"


def look_at_engines(config: Config) -> Iterator[Finding]:
    """Warn of columns that engines don't take, and of a catalog that rewrites or deletes files on its own.

    Topics whose schema can't be read are left out: other checks report why.
    """
    warned = False
    if (note := upkeep_note(config.catalog)) is not None:
        warned = True
        yield Finding(part=ENGINES, subject="catalog", outcome=Outcome.WARNING, detail=note)
    for topic in topics_of(config):
        try:
            schemas = TopicSchemas.read(topic, config.schema_registry)
            assigned = assign(LedgerState(), key=schemas.key, value=schemas.value, options=mapping_options(topic))
        except ContextError:
            continue
        for limit in exceeded_limits(assigned.iceberg_schema):
            warned = True
            yield Finding(part=ENGINES, subject=f"topic {topic.name}", outcome=Outcome.WARNING, detail=limit.text)
    if not warned:
        yield Finding(part=ENGINES, detail="no table exceeds a known limit of an engine")
