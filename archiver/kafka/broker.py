"""What a driver asks of Kafka before anything is fetched: which topics there are, where their logs begin and end.

Leaders are found, and followed as they move; transient errors are tried again for up to twice `socket.timeout.ms`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kafka import errors as kafka
from kafka.protocol.admin.cluster import DescribeLogDirsRequest

from archiver.kafka.cluster import Cluster
from archiver.kafka.leader_requests import NOWHERE, At, RequestOf, epochs_request, named, offsets_request, portions
from archiver.kafka.leaders import Leaders, PartitionDescription, TopicDescription
from archiver.kafka.options import parse_kafka_options
from archiver.kafka.retries import with_retries

__all__ = ["At", "BrokerClient", "EpochEnd", "PartitionDescription", "TopicDescription"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """The latest epoch that the leader knows up to the one asked for, and the offset after its last record.

    A log archived beyond `end_offset`, or in a later epoch than this, may have diverged from the leader's.
    """

    leader_epoch: int
    end_offset: int


class BrokerClient:
    """Asks the brokers of one cluster.

    `options` have librdkafka's names; wrong ones raise `ConfigError` here. Nothing is connected before the first
    question, which raises `BrokerUnavailable` naming the addresses where none answers. Questions about topics raise
    `UnknownTopic`, `AccessDenied`, `LeaderUnavailable`, naming the topic.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options: Final = parse_kafka_options(options)
        self._cluster = Cluster(self.options)
        self.leaders: Final = Leaders(self._cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    def cluster_id(self) -> str:
        """The id that the cluster gives itself."""
        return with_retries(self.options, lambda: str(self._cluster.metadata(()).cluster_id))

    def topics(self) -> tuple[str, ...]:
        """The names of all topics that the principal may see, without Kafka's internal ones."""
        response = with_retries(self.options, lambda: self._cluster.metadata(None))
        return tuple(sorted(topic.name for topic in response.topics if not topic.is_internal))

    def describe(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        """Describe topics as they are now."""
        named = tuple(topics)
        self.refresh(named)
        return {topic: self.described(topic) for topic in named}

    def refresh(self, topics: Iterable[str]) -> None:
        """Ask how topics are now, all in one request; what is wrong with one of them `described` says."""
        if named := tuple(topics):
            with_retries(self.options, lambda: self.leaders.refresh(named), topics=named)

    def described(self, topic: str) -> TopicDescription:
        """A topic as it was when last asked about."""
        return with_retries(self.options, lambda: self.leaders.topic(topic), topic=topic)

    def list_offsets(self, topic: str, partitions: Iterable[int], at: At | int) -> dict[int, int]:
        """Where the partitions' logs begin or end, or the first offset at or after a time in ms since 1970.

        `latest_stable` is where committed records end: transactions that are still open lie behind it. A time later
        than every record's gives that end too.
        """
        answers = self.ask_leaders(
            topic, partitions, offsets_request(at, self._epoch, self.options.request_timeout), _place_of
        )
        offsets = {partition: int(each.offset) for partition, each in answers.items()}
        if after_all := [partition for partition, offset in offsets.items() if offset == NOWHERE]:
            offsets |= self.list_offsets(topic, after_all, "latest_stable")
        return offsets

    def list_offsets_at_once(self, asked: Mapping[str, Iterable[int]], at: At) -> dict[str, dict[int, int]]:
        """The same of many topics' partitions, see `ask_at_once`."""
        answers = self.ask_at_once(asked, offsets_request(at, self._epoch, self.options.request_timeout), _place_of)
        found = {topic: {each: int(one.offset) for each, one in those.items()} for topic, those in answers.items()}
        return {topic: offsets for topic, offsets in found.items() if NOWHERE not in offsets.values()}

    def end_of_epoch(self, topic: str, epochs: Mapping[int, int]) -> dict[int, EpochEnd]:
        """Where the given leader epochs of the partitions end; those that their leader can't tell are left out."""
        answers = self.ask_leaders(topic, epochs, epochs_request({topic: epochs}, self._epoch), _partition_of)
        return _epoch_ends(answers)

    def end_of_epoch_at_once(self, asked: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, EpochEnd]]:
        """The same of many topics' partitions, see `ask_at_once`."""
        answers = self.ask_at_once(asked, epochs_request(asked, self._epoch), _partition_of)
        return {topic: _epoch_ends(those) for topic, those in answers.items()}

    def epoch_before(self, topic: str, partition: int, offset: int, *, since: int) -> EpochEnd | None:
        """The epoch, `since` or a later one, in which the leader has what lies right before `offset`.

        None where its log ends before the offset, or it doesn't say in which epoch it leads.
        """
        low, high = since, self._epoch(topic, partition)
        found: EpochEnd | None = None
        while low <= high:
            middle = (low + high) // 2
            answer = self.end_of_epoch(topic, {partition: middle}).get(partition)
            if answer is not None and answer.end_offset >= offset:
                found, high = answer, middle - 1
            else:
                low = middle + 1
        return found

    def log_sizes(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Bytes of the partitions' logs on their leaders' disks, for an estimate.

        Partitions whose leader doesn't tell are left out: the principal may lack DESCRIBE on the cluster.
        """
        by_leader = defaultdict[int, list[int]](list)
        for partition, described in self.describe([topic])[topic].partitions.items():
            if described.leader is not None:
                by_leader[described.leader].append(partition)
        wanted = set(partitions)
        sizes: dict[int, int] = {}
        for node, led in by_leader.items():
            asked = sorted(wanted.intersection(led))
            about = DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=asked)
            try:
                response = self.leaders.ask(node, topic, DescribeLogDirsRequest(topics=[about]))
            except kafka.KafkaError:
                continue
            for found in (each for log_dir in response.results for each in log_dir.topics if each.name == topic):
                sizes |= {
                    each.partition_index: each.partition_size for each in found.partitions if not each.is_future_key
                }
        return sizes

    def ask_leaders(
        self, topic: str, partitions: Iterable[int], request: RequestOf, number_of: Callable[[Any], int]
    ) -> dict[int, Any]:
        """Ask each leader once about all its partitions, again about those that failed; gives their answers.

        `request` makes the request about some of them, `number_of` says which one an answer is about.
        """
        left, found = set(partitions), dict[int, Any]()

        def attempt() -> None:
            by_leader = defaultdict[int, list[int]](list)
            for partition in sorted(left):
                by_leader[self.leaders.leader(topic, partition)[0]].append(partition)
            for node, asked in by_leader.items():
                for each in self.leaders.ask(node, topic, request({topic: asked})).topics[0].partitions:
                    self.leaders.check(topic, each.error_code)
                    found[number_of(each)] = each
                    left.discard(number_of(each))
            if left:
                raise kafka.LeaderNotAvailableError

        with_retries(self.options, attempt, topic=topic, partitions=tuple(sorted(left)))
        return found

    def ask_at_once(
        self, asked: Mapping[str, Iterable[int]], request: RequestOf, number_of: Callable[[Any], int]
    ) -> dict[str, dict[int, Any]]:
        """Ask each leader once about the partitions of all topics, with a single attempt; gives whole topics' answers.

        A topic of which a partition has no leader or no answer is left out: ask about it alone, and what is wrong with
        it is tried again or raised. No topic's trouble is another's.
        """
        wanted = {topic: set(partitions) for topic, partitions in asked.items()}
        found: dict[str, dict[int, Any]] = {topic: {} for topic in wanted}
        failed = set[str]()
        for node, led in self._by_leader(wanted).items():
            for some in portions(led):
                try:
                    response = self._cluster.ask(request(some), node)
                except kafka.KafkaError:
                    failed.update(some)
                    continue
                for topic, answers in named(response):
                    found[topic] |= {number_of(each): each for each in answers if not each.error_code}
                    failed |= {topic for each in answers if each.error_code}
        for topic in failed:
            self.leaders.forget(topic)
        return {topic: answers for topic, answers in found.items() if answers.keys() == wanted[topic]}

    def _by_leader(self, wanted: Mapping[str, set[int]]) -> dict[int, dict[str, list[int]]]:
        """Which partitions each broker leads; topics of which one has no leader are left out."""
        by_leader = defaultdict[int, dict[str, list[int]]](dict)
        for topic, partitions in wanted.items():
            try:
                leaders = {each: self.leaders.leader(topic, each)[0] for each in sorted(partitions)}
            except kafka.KafkaError:
                continue
            for partition, node in leaders.items():
                by_leader[node].setdefault(topic, []).append(partition)
        return by_leader

    def _epoch(self, topic: str, partition: int) -> int:
        """The epoch in which the leader is believed to lead: one that no longer does then refuses to answer."""
        return self.leaders.leader(topic, partition)[1]

    def ask_every_broker(self, request: Any) -> list[Any]:
        """The answers of all brokers that give one, each asked once."""
        answers: list[Any] = []
        for node in self._cluster.nodes():
            try:
                answers.append(self._cluster.ask(request, node))
            except kafka.KafkaError:
                continue
        return answers


def _epoch_ends(answers: Mapping[int, Any]) -> dict[int, EpochEnd]:
    return {
        partition: EpochEnd(leader_epoch=each.leader_epoch, end_offset=each.end_offset)
        for partition, each in answers.items()
        if each.end_offset != NOWHERE
    }


def _place_of(answer: Any) -> int:
    return int(answer.partition_index)


def _partition_of(answer: Any) -> int:
    return int(answer.partition)
