"""Checks which retentions need consent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from archiver.commit.retention_consent import consent_missing, short_retention
from archiver.setup.findings import CheckOutcome, Finding
from schema_mapping.errors import ContextError

if TYPE_CHECKING:
    from archiver.config import Config

RETENTION: Final = "Retention"


def look_at_retention(config: Config) -> Iterator[Finding]:
    """Warn of limits below a day, and if more than half of a topic would be retired now."""
    limits = {name: config.topic(name).retention_limits for name in config.sections}
    if not any(limits.values()):
        return
    planned = _planned(config)
    reasons = {topic: "; ".join(causes) for topic, causes in planned.items() if causes}
    for name, text in limits.items():
        if text is not None and config.topic(name).has_short_retention and name not in planned:
            reasons[name] = short_retention(text)
    for name, reason in sorted(reasons.items()):
        detail = consent_missing(name, reason).message
        yield Finding(part=RETENTION, subject=f"topic {name}", outcome=CheckOutcome.WARNING, detail=detail)
    if not reasons:
        yield Finding(part=RETENTION, detail="no limit needs consent")


def _planned(config: Config) -> Mapping[str, tuple[str, ...]]:
    """Topics that can't be read are left out."""
    from archiver.upkeep.consent import WITHHELD
    from archiver.upkeep.retire.job import Expire, ExpireOptions
    from catalog.registry import RegistryReader

    try:
        with RegistryReader(config.registry.dsn) as registry:
            rows = registry.topics.every()
        names = [
            row.topic
            for row in rows
            if config.table_of(row.topic) == row.table and config.topic(row.topic).retention_limits is not None
        ]
        if not names:
            return {}
        report = Expire(config, names, options=ExpireOptions(dry_run=True), consent=WITHHELD).run()
    except ContextError:
        return {}
    return {topic.topic: topic.needs_consent for topic in report.topics if topic.error is None}
