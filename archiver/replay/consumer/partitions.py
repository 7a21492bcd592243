"""confluent_kafka's partitions and failures, checked and made in one place."""

from __future__ import annotations

from typing import Any, TypeAlias

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

# librdkafka's own codes, which confluent_kafka spells with an underscore
INVALID_ARG = KafkaError._INVALID_ARG  # noqa: SLF001
CONFLICT = KafkaError._CONFLICT  # noqa: SLF001
UNKNOWN_GROUP = KafkaError._UNKNOWN_GROUP  # noqa: SLF001
UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001
PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
NO_OFFSET = KafkaError._NO_OFFSET  # noqa: SLF001
AUTO_OFFSET_RESET = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


def place_of(one: TopicPartition) -> Place:
    """Return topic and partition."""
    return one.topic, one.partition


def check_list(partitions: Any) -> None:
    """Raise TypeError unless this is a list of TopicPartition, as confluent_kafka does."""
    if not isinstance(partitions, list) or not all(isinstance(one, TopicPartition) for one in partitions):
        raise TypeError("requires list of TopicPartition")


def failure(code: int, text: str) -> KafkaException:
    """Make the exception that confluent_kafka's methods raise."""
    return KafkaException(KafkaError(code, text))


def or_invalid(offset: int | None) -> int:
    """Return the offset, or confluent_kafka's word for none."""
    found: int = OFFSET_INVALID if offset is None else offset
    return found
