"""Checks how engines and the catalog treat the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archiver.config import Config
from archiver.setup.findings import CheckOutcome, Finding
from archiver.setup.name_checks import topics_of
from archiver.setup.read_schemas import read_schemas
from archiver.topics.catalog_upkeep import upkeep_note
from archiver.topics.engine_limits import exceeded_limits

ENGINES: Final = "Engines"


def look_at_engines(config: Config) -> Iterator[Finding]:
    """Topics with unreadable schemas are left out: another check reports them."""
    warned = False
    if (note := upkeep_note(config.catalog)) is not None:
        warned = True
        yield Finding(part=ENGINES, subject="catalog", outcome=CheckOutcome.WARNING, detail=note)
    for topic, _, assigned in read_schemas(config, topics_of(config)):
        for limit in exceeded_limits(assigned.iceberg_schema):
            warned = True
            yield Finding(part=ENGINES, subject=f"topic {topic.name}", outcome=CheckOutcome.WARNING, detail=limit.text)
    if not warned:
        yield Finding(part=ENGINES, detail="no table exceeds a known limit of an engine")
