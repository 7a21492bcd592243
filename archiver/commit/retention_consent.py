"""The consent that a topic's retention limits need, by the registry."""

from __future__ import annotations

from collections.abc import Mapping

from archiver.config.model import TopicConfig
from archiver.errors import ConsentMissing
from catalog.registry.retention_consents import RetentionConsent


def short_retention(limits: str) -> str:
    return f"records of the last day may go by {limits}"


def missing_consent(config: TopicConfig, consents: Mapping[str, RetentionConsent]) -> ConsentMissing | None:
    limits = config.retention_limits
    if config.expire != "auto" or limits is None:
        return None
    consent = consents.get(limits)
    if consent is not None:
        return None if consent.is_given else consent_missing(config.name, consent.reason)
    return consent_missing(config.name, short_retention(limits)) if config.has_short_retention else None


def consent_missing(topic: str, reason: str) -> ConsentMissing:
    return ConsentMissing(
        f"{reason}: nothing of the topic is retired. If that is right, run `archiver expire {topic} --yes` once; else"
        " correct `retention` and `retention_size`. `archiver expire --dry-run` shows what would go",
        topic=topic,
    )
