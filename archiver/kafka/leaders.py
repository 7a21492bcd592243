"""The leaders of partitions, cached until a broker reports a move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from kafka import errors as kafka

from archiver.kafka.cluster import Cluster
from archiver.kafka.protocol_errors import is_transient

_NO_TOPIC_ID: Final = UUID(int=0)
_NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """`leader_epoch` is -1 if unknown."""

    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """`topic_id` is None if the broker is older than 2.8."""

    topic_id: UUID | None
    partitions: Mapping[int, PartitionDescription]

    def beside(self, before: TopicDescription | None) -> TopicDescription:
        """Keep partitions that `before` has in a later epoch: isolated brokers report old leaders."""
        if before is None or self.topic_id is None or before.topic_id != self.topic_id:
            return self
        newer = {
            number: partition
            for number, partition in before.partitions.items()
            if number in self.partitions and -1 < self.partitions[number].leader_epoch < partition.leader_epoch
        }
        return replace(self, partitions={**self.partitions, **newer}) if newer else self


class Leaders:
    """Raises the protocol library's errors.

    With `fetches_by_name`, fetches name topics instead of giving their ids.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.fetches_by_name = False
        self._cluster = cluster
        self._known: dict[str, TopicDescription | kafka.KafkaError] = {}
        self._newest: dict[str, TopicDescription] = {}
        self._outdated: set[str] = set()

    def refresh(self, topics: Iterable[str]) -> None:
        for topic in self._cluster.metadata(tuple(topics)).topics:
            description = _describe(topic)
            if isinstance(description, TopicDescription):
                description = self._newest[topic.name] = description.beside(self._newest.get(topic.name))
            self._known[topic.name] = description
            self._outdated.discard(topic.name)

    def forget(self, topic: str) -> None:
        self._known.pop(topic, None)

    def outdate(self, topic: str) -> None:
        """Mark the cached description as an earlier user's."""
        self._outdated.add(topic)

    def is_outdated(self, topic: str) -> bool:
        """The topic may have been recreated since `outdate`."""
        return topic in self._outdated

    def topic(self, name: str) -> TopicDescription:
        """The last description, whose error is raised once."""
        if name not in self._known:
            self.refresh((name,))
        description = self._known.get(name, kafka.UnknownTopicOrPartitionError())
        if isinstance(description, TopicDescription):
            return description
        self.forget(name)
        raise description

    def leader(self, topic: str, partition: int) -> tuple[int, int]:
        described = self.topic(topic).partitions.get(partition)
        if described is not None and described.leader is not None:
            return described.leader, described.leader_epoch
        self.forget(topic)
        raise kafka.UnknownTopicOrPartitionError if described is None else kafka.LeaderNotAvailableError

    def ask(self, node: int, topic: str, request: Any) -> Any:
        """Transient errors drop the topic from the cache."""
        try:
            return self._cluster.ask(request, node)
        except kafka.KafkaError as error:
            if is_transient(error):
                self.forget(topic)
            raise

    def disconnect(self, topic: str, partition: int) -> None:
        self._cluster.disconnect(self.leader(topic, partition)[0])

    def check(self, topic: str, error_code: int) -> None:
        """Raise the error of this code, and drop the topic from the cache."""
        error = kafka.for_code(error_code)
        if error is not kafka.NoError:
            self.forget(topic)
            raise error


def _describe(topic: Any) -> TopicDescription | kafka.KafkaError:
    error = kafka.for_code(topic.error_code)
    if error is not kafka.NoError:
        made: kafka.KafkaError = error()
        return made
    return TopicDescription(
        topic_id=None if topic.topic_id in (None, _NO_TOPIC_ID) else topic.topic_id,
        partitions={
            partition.partition_index: PartitionDescription(
                leader=None if partition.leader_id == _NO_LEADER else partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replicas=tuple(partition.replica_nodes),
            )
            for partition in topic.partitions
        },
    )
