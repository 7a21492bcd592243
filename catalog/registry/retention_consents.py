"""Retention limits with consent or waiting for it. A rebuilt registry has none. Idempotent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.model import TopicRow
from catalog.registry.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConsent:
    """Consent to a topic's limits, or a request with its reason."""

    reason: str
    is_given: bool
    given_by: str | None = None


def of_topics(connection: Connection, topics: Sequence[TopicRow]) -> dict[int, Mapping[str, RetentionConsent]]:
    """By topic id and limits."""
    consents: dict[int, dict[str, RetentionConsent]] = defaultdict(dict)
    rows = connection.execute(
        "SELECT topic_id, limits, reason, given_at IS NOT NULL, given_by FROM retention_consents"
        " WHERE topic_id = ANY(%s)",
        ([topic.id for topic in topics],),
    )
    for topic_id, limits, reason, is_given, given_by in rows:
        consents[topic_id][limits] = RetentionConsent(reason=reason, is_given=is_given, given_by=given_by)
    return {topic.id: consents[topic.id] for topic in topics}


def request(connection: Connection, topic: TopicRow, limits: str, reason: str) -> None:
    """Given consent stays."""
    connection.execute(
        "INSERT INTO retention_consents (topic_id, limits, reason) VALUES (%s, %s, %s)"
        " ON CONFLICT (topic_id, limits) DO UPDATE SET reason = excluded.reason"
        " WHERE retention_consents.given_at IS NULL",
        (topic.id, limits, reason),
    )


def give(connection: Connection, topic: TopicRow, limits: str, *, reason: str, by: str) -> None:
    connection.execute(
        "INSERT INTO retention_consents (topic_id, limits, reason, given_at, given_by) VALUES (%s, %s, %s, now(), %s)"
        " ON CONFLICT (topic_id, limits) DO UPDATE SET given_at = now(), given_by = excluded.given_by"
        " WHERE retention_consents.given_at IS NULL",
        (topic.id, limits, reason, by),
    )


def withdraw_requests(connection: Connection, topic: TopicRow) -> None:
    connection.execute("DELETE FROM retention_consents WHERE topic_id = %s AND given_at IS NULL", (topic.id,))
