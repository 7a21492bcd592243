"""Query brokers: topics, leaders, offsets.

Retries transient errors for up to twice `socket.timeout.ms`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kafka import errors as kafka
from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.metadata import ApiVersionsRequest

from archiver.errors import SourceError
from archiver.kafka.cluster import Cluster
from archiver.kafka.leader_requests import NOWHERE, At, RequestOf, epochs_request, named, offsets_request, portions
from archiver.kafka.leaders import Leaders, PartitionDescription, TopicDescription
from archiver.kafka.options import parse_kafka_options
from archiver.kafka.protocol_errors import with_retries

_TOPIC_RESOURCE: Final = 2
_CLEANUP_POLICY: Final = "cleanup.policy"

__all__ = ["At", "BrokerClient", "EpochEnd", "PartitionDescription", "TopicDescription"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """`leader_epoch` is the requested or an earlier one.

    If later records are archived, the logs may have diverged.
    """

    leader_epoch: int
    end_offset: int


class BrokerClient:
    """A client of one cluster, by librdkafka's options. A context manager.

    Raises ConfigError, and later BrokerUnavailable, for topics UnknownTopic, AccessDenied and LeaderUnavailable.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options: Final = parse_kafka_options(options)
        self._cluster = Cluster(self.options)
        self.leaders: Final = Leaders(self._cluster)
        self.lacks_epochs = False
        """Whether a broker was seen that has no requests about leader epochs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._cluster.close()

    def cluster_id(self) -> str:
        return with_retries(self.options, lambda: str(self._cluster.metadata(()).cluster_id))

    def requests(self) -> frozenset[int]:
        response = with_retries(self.options, lambda: self._cluster.ask_any(_api_versions))
        return frozenset(int(api.api_key) for api in response.api_keys)

    def topics(self) -> tuple[str, ...]:
        """Without Kafka's internal ones."""
        response = with_retries(self.options, lambda: self._cluster.metadata(None))
        return tuple(sorted(topic.name for topic in response.topics if not topic.is_internal))

    def describe(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        named = tuple(topics)
        self.refresh(named)
        return {topic: self.described(topic) for topic in named}

    def refresh(self, topics: Iterable[str]) -> None:
        """One request. A topic's error is raised by `described`."""
        if named := tuple(topics):
            with_retries(self.options, lambda: self.leaders.refresh(named), topics=named)

    def described(self, topic: str) -> TopicDescription:
        return with_retries(self.options, lambda: self.leaders.topic(topic), topic=topic)

    def list_offsets(self, topic: str, partitions: Iterable[int], at: At | int) -> dict[int, int]:
        """Offsets at one end of each log, or since a time (ms).

        "latest_stable" is the end of the committed records, also the answer if all records are older than the time.
        """
        answers = self.ask_leaders(
            topic, partitions, offsets_request(at, self._epoch, self.options.request_timeout), _place_of
        )
        offsets = {partition: int(answer.offset) for partition, answer in answers.items()}
        if at == "earliest_local":
            return {partition: max(0, offset) for partition, offset in offsets.items()}
        if older := [partition for partition, offset in offsets.items() if offset == NOWHERE]:
            offsets |= self.list_offsets(topic, older, "latest_stable")
        return offsets

    def list_offsets_at_once(self, asked: Mapping[str, Iterable[int]], at: At) -> dict[str, dict[int, int]]:
        """Omits topics as `ask_at_once` does."""
        answers = self.ask_at_once(asked, offsets_request(at, self._epoch, self.options.request_timeout), _place_of)
        listed = {
            topic: {partition: int(answer.offset) for partition, answer in by_partition.items()}
            for topic, by_partition in answers.items()
        }
        return {topic: offsets for topic, offsets in listed.items() if NOWHERE not in offsets.values()}

    def end_of_epoch(self, topic: str, epochs: Mapping[int, int]) -> dict[int, EpochEnd]:
        """Partitions without an answer are left out: all if brokers lack the request."""
        if self.lacks_epochs:
            return {}
        try:
            answers = self.ask_leaders(topic, epochs, epochs_request({topic: epochs}, self._epoch), _partition_of)
        except SourceError as error:
            if not isinstance(error.__cause__, kafka.UnsupportedVersionError):
                raise
            self.lacks_epochs = True
            return {}
        return _epoch_ends(answers)

    def end_of_epoch_at_once(self, asked: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, EpochEnd]]:
        """Omits topics as `ask_at_once` does."""
        if self.lacks_epochs:
            return {topic: {} for topic in asked}
        answers = self.ask_at_once(asked, epochs_request(asked, self._epoch), _partition_of)
        return {topic: _epoch_ends(by_partition) for topic, by_partition in answers.items()}

    def current_epoch(self, topic: str, partition: int) -> int:
        """-1 if unknown."""
        return with_retries(self.options, lambda: self._epoch(topic, partition), topic=topic, partition=partition)

    def epoch_before(self, topic: str, partition: int, offset: int, *, since: int) -> EpochEnd | None:
        """The epoch, from `since` on, of the record before `offset`.

        None if the leader's log ends before the offset, or its epoch is unknown.
        """
        low, high = since, self._epoch(topic, partition)
        epoch_end: EpochEnd | None = None
        while low <= high:
            middle = (low + high) // 2
            answer = self.end_of_epoch(topic, {partition: middle}).get(partition)
            if answer is not None and answer.end_offset >= offset:
                epoch_end, high = answer, middle - 1
            else:
                low = middle + 1
        return epoch_end

    def is_compacted(self, topic: str) -> bool | None:
        """None if unknown, e.g. without DESCRIBE_CONFIGS."""
        about = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=[_CLEANUP_POLICY]
        )
        try:
            response = self._cluster.ask_any(lambda: DescribeConfigsRequest(resources=[about]))
        except (kafka.KafkaError, SourceError):
            return None
        values = [
            setting.value
            for result in response.results
            if not result.error_code
            for setting in result.configs
            if setting.name == _CLEANUP_POLICY
        ]
        return "compact" in values[0] if values and values[0] is not None else None

    def log_sizes(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Bytes on disk, for estimates. Incomplete without DESCRIBE on the cluster."""
        by_leader = defaultdict[int, list[int]](list)
        for partition, described in self.describe([topic])[topic].partitions.items():
            if described.leader is not None:
                by_leader[described.leader].append(partition)
        selected = set(partitions)
        sizes: dict[int, int] = {}
        for node, led in by_leader.items():
            asked = sorted(selected.intersection(led))
            about = DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=asked)
            try:
                response = self.leaders.ask(node, topic, DescribeLogDirsRequest(topics=[about]))
            except kafka.KafkaError:
                continue
            for reported in (entry for log_dir in response.results for entry in log_dir.topics if entry.name == topic):
                sizes |= {
                    partition.partition_index: partition.partition_size
                    for partition in reported.partitions
                    if not partition.is_future_key
                }
        return sizes

    def ask_leaders(
        self, topic: str, partitions: Iterable[int], request: RequestOf, number_of: Callable[[Any], int]
    ) -> dict[int, Any]:
        """Send each leader one request for its partitions, and retry failed ones.

        `number_of` returns an answer's partition.
        """
        left, answers = set(partitions), dict[int, Any]()

        def attempt() -> None:
            by_leader = defaultdict[int, list[int]](list)
            for partition in sorted(left):
                by_leader[self.leaders.leader(topic, partition)[0]].append(partition)
            for node, asked in by_leader.items():
                for answer in self.leaders.ask(node, topic, request({topic: asked})).topics[0].partitions:
                    self.leaders.check(topic, answer.error_code)
                    answers[number_of(answer)] = answer
                    left.discard(number_of(answer))
            if left:
                raise kafka.LeaderNotAvailableError

        with_retries(self.options, attempt, topic=topic, partitions=tuple(sorted(left)))
        return answers

    def ask_at_once(
        self, asked: Mapping[str, Iterable[int]], request: RequestOf, number_of: Callable[[Any], int]
    ) -> dict[str, dict[int, Any]]:
        """Send each leader one request for many topics, without retries.

        Incomplete topics are left out, so topics never affect each other: `ask_leaders` retries them, or raises their
        errors.
        """
        topics = {topic: set(partitions) for topic, partitions in asked.items()}
        received: dict[str, dict[int, Any]] = {topic: {} for topic in topics}
        failed = set[str]()
        for node, led in self._by_leader(topics).items():
            for some in portions(led):
                try:
                    response = self._cluster.ask(request(some), node)
                except kafka.KafkaError:
                    failed.update(some)
                    continue
                for topic, answers in named(response):
                    received[topic] |= {number_of(answer): answer for answer in answers if not answer.error_code}
                    failed |= {topic for answer in answers if answer.error_code}
        for topic in failed:
            self.leaders.forget(topic)
        return {topic: answers for topic, answers in received.items() if answers.keys() == topics[topic]}

    def _by_leader(self, wanted: Mapping[str, set[int]]) -> dict[int, dict[str, list[int]]]:
        by_leader = defaultdict[int, dict[str, list[int]]](dict)
        for topic, partitions in wanted.items():
            try:
                leaders = {partition: self.leaders.leader(topic, partition)[0] for partition in sorted(partitions)}
            except kafka.KafkaError:
                continue
            for partition, node in leaders.items():
                by_leader[node].setdefault(topic, []).append(partition)
        return by_leader

    def _epoch(self, topic: str, partition: int) -> int:
        return self.leaders.leader(topic, partition)[1]

    def ask_any(self, request: Callable[[], Any]) -> Any:
        """One attempt. Raises the protocol library's errors."""
        return self._cluster.ask_any(request)

    def ask(self, node: int, request: Any) -> Any:
        """One attempt. Raises the protocol library's errors."""
        return self._cluster.ask(request, node)

    def ask_every_broker(self, request: Any) -> list[Any]:
        """Brokers that fail are left out."""
        answers: list[Any] = []
        for node in self._cluster.nodes():
            try:
                answers.append(self._cluster.ask(request, node))
            except kafka.KafkaError:
                continue
        return answers


def _api_versions() -> Any:
    """The oldest version, because some brokers hang up at newer ones."""
    return ApiVersionsRequest(max_version=0)


def _epoch_ends(answers: Mapping[int, Any]) -> dict[int, EpochEnd]:
    return {
        partition: EpochEnd(leader_epoch=answer.leader_epoch, end_offset=answer.end_offset)
        for partition, answer in answers.items()
        if answer.end_offset != NOWHERE
    }


def _place_of(answer: Any) -> int:
    return int(answer.partition_index)


def _partition_of(answer: Any) -> int:
    return int(answer.partition)
