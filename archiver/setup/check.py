"""Runs all checks of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archiver.config import Config
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.setup.engine_checks import ENGINES, look_at_engines
from archiver.setup.findings import Check, CheckOutcome, Finding, failure
from archiver.setup.flight_checks import look_at_flight
from archiver.setup.machine_checks import look_at_java, look_at_signing_key, look_at_spark, look_at_spool
from archiver.setup.name_checks import NAMES, look_at_names
from archiver.setup.server_checks import look_at_kafka, look_at_postgres, look_at_schema_registry
from archiver.setup.table_checks import STORE, look_at_journal, look_at_tables
from archiver.setup.value_checks import SAMPLED, VALUES, look_at_values
from schema_mapping.errors import ContextError

CONFIGURATION: Final = "Configuration"
SPARK: Final = "Spark"
SPARK_FACTOR: Final = 4.0
"""Spark may take this many times as long as other parts: it starts a JVM and a worker."""


def checks_of(config: Config, *, seconds: float, with_spark: bool = True, samples: int = SAMPLED) -> tuple[Check, ...]:
    """No finding takes longer than `seconds`."""
    checks = [
        Check(part=CONFIGURATION, look=lambda: _look_at_topics(config), seconds=seconds),
        Check(part="Spool", look=lambda: look_at_spool(config.archive), seconds=seconds),
        Check(part="Signing key", look=lambda: look_at_signing_key(config.audit), seconds=seconds),
        Check(part="Java", look=lambda: look_at_java(config.spark), seconds=seconds),
        Check(part="Kafka", look=lambda: look_at_kafka(config), seconds=seconds),
        Check(part="Flight", look=lambda: look_at_flight(config), seconds=seconds),
        Check(part="Postgres", look=lambda: look_at_postgres(config.registry.dsn), seconds=seconds),
        Check(part="Catalog", look=lambda: look_at_tables(config, seconds=seconds), seconds=seconds),
        Check(part=NAMES, look=lambda: look_at_names(config, seconds=seconds), seconds=seconds),
        Check(part=STORE, look=lambda: look_at_journal(config), seconds=seconds),
        Check(part=ENGINES, look=lambda: look_at_engines(config), seconds=seconds),
        Check(part="Schema registry", look=lambda: look_at_schema_registry(config), seconds=seconds),
        Check(part=VALUES, look=lambda: look_at_values(config, samples), seconds=seconds),
        Check(part=SPARK, look=lambda: look_at_spark(config.spark), seconds=seconds * SPARK_FACTOR),
    ]
    skipped = Check(part=SPARK, look=_not_started, seconds=seconds)
    return (*checks[:-1], checks[-1] if with_spark else skipped)


def _look_at_topics(config: Config) -> Iterator[Finding]:
    sections = config.sections
    failed = False
    for name in sections:
        try:
            TopicSchemas.check(config.topic(name), config.schema_registry)
        except ContextError as error:
            failed = True
            yield failure(CONFIGURATION, error, f"topic {name}")
    if not sections:
        detail = "it loads, and has no [topics.NAME] section: there is nothing to archive"
        yield Finding(part=CONFIGURATION, outcome=CheckOutcome.WARNING, detail=detail)
    elif not failed:
        noun = "section of a topic" if len(sections) == 1 else "sections of topics"
        yield Finding(part=CONFIGURATION, detail=f"it loads, with {len(sections):,} {noun}")


def _not_started() -> Iterator[Finding]:
    yield Finding(part=SPARK, outcome=CheckOutcome.SKIPPED, detail="not started, as asked")
