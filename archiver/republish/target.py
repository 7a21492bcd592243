"""The target topic, checked before any record is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from archiver.errors import ConfigError, TargetReplaced, UnknownTopic
from archiver.kafka.admin import ClusterAdmin
from archiver.kafka.broker import BrokerClient, TopicDescription
from archiver.republish.refusals import AFTER_MAX, BATCH_OVERHEAD, BEFORE_MAX, FOREVER, MAX_BYTES

TIMESTAMP_TYPE: Final = "message.timestamp.type"
_DAY_MS: Final = 86_400_000
_FEW_DAYS_MS: Final = 2 * _DAY_MS
_HOUR_MS: Final = 3_600_000
_MOST_BATCH_BYTES: Final = 1 << 20

AS_COPIED: Final = {
    TIMESTAMP_TYPE: "CreateTime",
    BEFORE_MAX: str(FOREVER),
    AFTER_MAX: str(FOREVER),
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
"""The settings of a topic that `--create` makes: it takes every timestamp, and keeps what it takes."""

PROGRESS: Final = {"cleanup.policy": "compact", TIMESTAMP_TYPE: "CreateTime"}
"""The settings of the topic of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`id` is empty if the cluster has no topic ids."""

    name: str
    id: str
    partitions: int
    most_batch_bytes: int
    notes: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


def create_target(admin: ClusterAdmin, name: str, partitions: int, settings: Mapping[str, str]) -> None:
    admin.create_topic(name, partitions, {**AS_COPIED, **settings})


def check_target(brokers: BrokerClient, admin: ClusterAdmin, name: str, *, partitions: tuple[int, ...]) -> Target:
    """Raises ConfigError unless the target accepts these partitions' records unchanged."""
    try:
        described = brokers.describe([name])[name]
    except UnknownTopic as error:
        raise ConfigError(
            "the cluster has no such topic: create it, or let --create do it", **{**error.context, "topic": name}
        ) from error
    if lacking := [partition for partition in partitions if partition not in described.partitions]:
        raise ConfigError(
            "the target lacks partitions: records keep their partition, so add them (kafka-topics.sh --alter "
            "--partitions), or choose an empty topic with --create",
            topic=name,
            partitions=len(described.partitions),
            lacking=lacking,
        )
    settings = admin.topic_settings(name)
    if settings.get(TIMESTAMP_TYPE, "CreateTime") != "CreateTime":
        raise ConfigError(
            f"the target gives records the time of their arrival: set its {TIMESTAMP_TYPE} to CreateTime, so that "
            "they keep their timestamps",
            topic=name,
        )
    most = int(settings.get(MAX_BYTES, _MOST_BATCH_BYTES))
    return Target(
        name=name,
        id=_id_of(described),
        partitions=len(described.partitions),
        most_batch_bytes=max(1, min(most - BATCH_OVERHEAD, _MOST_BATCH_BYTES)),
        notes=tuple(_notes(name, settings)),
        settings=settings,
    )


def check_same(brokers: BrokerClient, target: Target) -> None:
    """Raise TargetReplaced if the target was recreated since it was checked."""
    topic_id = _id_of(brokers.describe([target.name])[target.name])
    if topic_id != target.id:
        raise TargetReplaced(
            "the target was deleted and made again while records were moved to it, so it lacks what was moved before: "
            "empty it, and begin again under another --transfer",
            topic=target.name,
            topic_id=topic_id,
            begun_with=target.id,
        )


def check_progress_topic(brokers: BrokerClient, admin: ClusterAdmin, name: str) -> None:
    """Create the topic if missing. Raises ConfigError if it would lose entries."""
    try:
        brokers.describe([name])
    except UnknownTopic:
        admin.create_topic(name, 1, PROGRESS)
        brokers.describe([name])
    policy = admin.topic_settings(name).get("cleanup.policy", "compact")
    if policy != "compact":
        raise ConfigError(
            "the topic of progress deletes old entries, so a transfer could forget how far it came: set its "
            "cleanup.policy to compact",
            topic=name,
            found=policy,
        )


def _id_of(described: TopicDescription) -> str:
    return "" if described.topic_id is None else str(described.topic_id)


def _notes(name: str, settings: Mapping[str, str]) -> Iterator[str]:
    policy = settings.get("cleanup.policy", "delete")
    retention = int(settings.get("retention.ms", "-1"))
    if "delete" in policy and retention >= 0:
        yield (
            f"{name} deletes records {_duration(retention)} after their own timestamps, so older ones are gone soon "
            "after they are written; set its retention.ms to -1 to keep them"
        )
    if "delete" in policy and int(settings.get("retention.bytes", "-1")) >= 0:
        yield f"{name} keeps only {settings['retention.bytes']} bytes of each partition (retention.bytes)"
    if "compact" in policy:
        yield f"{name} is compacted: of records with the same key only the last stays, and records need a key"


def _duration(ms: int) -> str:
    return f"{ms / _DAY_MS:.0f} days" if ms >= _FEW_DAYS_MS else f"{ms / _HOUR_MS:.1f} hours"
