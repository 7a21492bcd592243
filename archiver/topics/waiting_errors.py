"""The errors of schema changes that wait for approval."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC

from archiver.config.model import TopicConfig
from archiver.errors import SchemaChangeWaits
from catalog.registry.schema_changes import StoredChange
from schema_mapping.columns.evolution import Change


def waits_error(topic: str, changes: Iterable[Change], *, what: str) -> SchemaChangeWaits:
    columns = ", ".join(f"{change.column} ({change.kind})" for change in changes)
    command = f"archiver schema approve {shlex.quote(topic)}"
    return SchemaChangeWaits(
        f"the topic's schema has changes that break queries of the table: {columns}. {what} Look at them with"
        f" `archiver schema diff {shlex.quote(topic)}`, then approve them with `{command}`, or restore the schema",
        topic=topic,
    )


def waiting_error(config: TopicConfig, stored: Iterable[StoredChange]) -> SchemaChangeWaits | None:
    waiting = next((change for change in stored if not change.is_approved), None)
    if waiting is None or config.on_schema_change == "apply":
        return None
    since = f"It waits since {waiting.waits_since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if config.on_schema_change == "halt":
        what = f"{since}, and the topic stops until it is approved."
    else:
        what = f"{since}. Until it is approved, values that fit only the new schema are kept raw."
    return waits_error(config.name, waiting.changes, what=what)
