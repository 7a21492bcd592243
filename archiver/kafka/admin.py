"""Administer topics and consumer groups by librdkafka's admin client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Self

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from kafka.errors import KafkaError as ProtocolError
from kafka.errors import SaslAuthenticationFailedError

from archiver.errors import AccessDenied, BrokerUnavailable, ConfigError, SourceError, UnknownTopic
from archiver.kafka.group_offsets import CommittedOffset
from archiver.kafka.msk_iam import PROFILE, REGION
from archiver.kafka.options import parse_kafka_options
from archiver.kafka.protocol_errors import explain
from archiver.kafka.token_callback import PROVIDER, CallbackTokens

_CONSUMER_OPTIONS: Final = ("fetch.", "isolation.level")
_MECHANISM: Final = "sasl.mechanism"
_CALLBACK_OPTIONS: Final = (PROVIDER, REGION, PROFILE, _MECHANISM, "sasl.mechanisms", "sasl.oauthbearer.extensions")
"""Options that librdkafka doesn't have, or gets with the callback."""
_DEFAULT_COPIES: Final = -1

_DENIED: Final = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
)
_PASSING: Final = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
_PAUSE: Final = 0.3
_LOOK: Final = 0.05
_AWAY: Final = (
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._SSL,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
)
_STATES: Final = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.UNKNOWN: "Rebalancing",  # librdkafka has no names for the states of groups that assign
}
_OF_MEMBERS: Final = (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID)
_HAS_MEMBERS: Final = (
    "the group has members, and only these may move it: stop its consumers, or wait until the sessions of those that"
    " died are over, then try again; `archiver groups describe` shows who they are"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """`kind` is the protocol (`classic` or `consumer`)."""

    kind: str
    state: str
    assignor: str
    members: tuple[GroupMember, ...]


class ClusterAdmin:
    """A context manager. `options` have librdkafka's names.

    Raises ConfigError for wrong options, AccessDenied, BrokerUnavailable, UnknownTopic, else SourceError.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        checked = parse_kafka_options(options)
        own: dict[str, Any] = {name: value for name, value in options.items() if not name.startswith(_CONSUMER_OPTIONS)}
        if (tokens := checked.token_callback()) is not None:
            own = {name: value for name, value in own.items() if name not in _CALLBACK_OPTIONS}
            own |= {_MECHANISM: "OAUTHBEARER", "oauth_cb": _usable(tokens).oauth_cb}
        self._identity = checked.msk_identity()
        self._seconds = checked.request_timeout / 1000
        self._failures: list[KafkaError] = []
        try:
            # silent: what matters comes back as an error
            own |= {"log_level": 0, "error_cb": self._failures.append}
            self._client: Any = AdminClient(own)
        except KafkaException as error:
            raise ConfigError(f"librdkafka refuses an option of [kafka]: {error.args[0].str()}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.__exit__(*error)

    def topic_settings(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._answer(
            lambda: self._client.describe_configs([resource], request_timeout=self._seconds)[resource],
            "DESCRIBE_CONFIGS on the topic",
            topic=topic,
        )
        return {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}

    def create_topic(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Use the default replication. Does nothing if the topic exists."""
        new = NewTopic(topic, num_partitions=partitions, replication_factor=_DEFAULT_COPIES, config=dict(settings))
        try:
            self._answer(
                lambda: self._client.create_topics(
                    [new], operation_timeout=self._seconds, request_timeout=self._seconds
                )[topic],
                "CREATE on the topic",
                topic=topic,
            )
        except SourceError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            raise

    def groups(self) -> tuple[str, ...]:
        listing = self._answer(
            lambda: self._client.list_consumer_groups(request_timeout=self._seconds), "DESCRIBE on the cluster"
        )
        if listing.errors:
            self._explain(listing.errors[0], "DESCRIBE on the cluster", {})
        return tuple(sorted(group.group_id for group in listing.valid))

    def is_active(self, group: str) -> bool:
        description = self._answer(
            lambda: self._client.describe_consumer_groups([group], request_timeout=self._seconds)[group],
            "DESCRIBE on the group",
            group=group,
        )
        return description.state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)

    def describe_group(self, group: str) -> GroupDescription:
        """Return a `Dead` group if it doesn't exist."""
        description = self._answer(
            lambda: self._client.describe_consumer_groups([group], request_timeout=self._seconds)[group],
            "DESCRIBE on the group",
            group=group,
        )
        members = tuple(
            GroupMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id or None,
                client_id=member.client_id,
                host=member.host.lstrip("/"),
                partitions=tuple(
                    sorted((partition.topic, partition.partition) for partition in member.assignment.topic_partitions)
                ),
            )
            for member in description.members
        )
        return GroupDescription(
            kind=description.type.name.lower(),
            state=_state(description.state),
            assignor=description.partition_assignor or "",
            members=tuple(sorted(members, key=lambda described: described.member_id)),
        )

    def check_inactive(self, group: str) -> None:
        """Raises SourceError while a group has members."""
        if self.is_active(group):
            raise SourceError(_HAS_MEMBERS, group=group)

    def delete_group(self, group: str) -> None:
        self._answer(
            lambda: self._client.delete_consumer_groups([group], request_timeout=self._seconds)[group],
            "DELETE on the group",
            group=group,
        )

    def commit(self, group: str, topic: str, offsets: Mapping[int, CommittedOffset]) -> None:
        """The group must have no members."""
        self.commit_all(group, {topic: offsets}, topic=topic)

    def commit_all(self, group: str, offsets: Mapping[str, Mapping[int, CommittedOffset]], **where: str) -> None:
        """Commit in one request. The group must have no members."""
        places = [
            TopicPartition(topic, partition, committed.offset, committed.metadata)
            for topic, partitions in sorted(offsets.items())
            for partition, committed in sorted(partitions.items())
        ]
        self._answer(
            lambda: self._client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, places)], request_timeout=self._seconds
            )[group],
            "READ on the group and on the topic",
            errors=lambda answer: {
                partition.partition: partition.error
                for partition in answer.topic_partitions
                if partition.error is not None
            },
            group=group,
            **where,
        )

    def _answer(
        self, ask: Any, right: str, *, errors: Callable[[Any], Mapping[int, Any]] = lambda _: {}, **where: Any
    ) -> Any:
        """Retry transient errors, also of partitions (`errors`)."""
        deadline = time.monotonic() + self._seconds
        while True:
            at = where
            try:
                answer = self._result(ask())
            except KafkaException as error:
                problem = error
            except TimeoutError as error:
                raise BrokerUnavailable("The brokers don't answer in time", **where) from error
            else:
                of_partitions = errors(answer)
                if not of_partitions:
                    return answer
                partition, failure = min(of_partitions.items(), key=lambda item: item[0])
                problem, at = KafkaException(failure), {**where, "partition": partition}
            if problem.args[0].code() not in _PASSING or time.monotonic() > deadline:
                self._explain(problem, right, at)
            time.sleep(_PAUSE)

    def _result(self, future: Future[Any]) -> Any:
        """Raises KafkaException once a login is refused; librdkafka would repeat it."""
        deadline = time.monotonic() + self._seconds + 5
        while not future.done() and time.monotonic() < deadline:
            self._client.poll(_LOOK)
            if (failure := self._failure()) is not None and failure.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001
                raise KafkaException(failure)
        return future.result(0)

    def _failure(self) -> KafkaError | None:
        """A refused login first, else the latest reason."""
        reasons = [error for error in self._failures if error.code() != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001
        refused = [error for error in reasons if error.code() == KafkaError._AUTHENTICATION]  # noqa: SLF001
        return next(reversed(refused or reasons), None)

    def _explain(self, error: KafkaException, right: str, where: Mapping[str, Any]) -> NoReturn:
        reason: KafkaError = error.args[0] if isinstance(error, KafkaException) else error
        if reason.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001
            refused: ProtocolError = SaslAuthenticationFailedError(reason.str())
            raise explain(self._identity.explain(refused) if self._identity else refused, **where) from error
        if reason.code() == KafkaError._TIMED_OUT:  # noqa: SLF001
            reason = self._failure() or reason
        if reason.code() in _DENIED:
            raise AccessDenied(f"The broker refuses: {reason.str()}. Give the principal {right}", **where) from error
        if reason.code() in _AWAY:
            raise BrokerUnavailable(f"No broker answers: {reason.str()}", **where) from error
        if reason.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
            raise UnknownTopic("The topic does not exist, or the principal may not DESCRIBE it", **where) from error
        if reason.code() in _OF_MEMBERS:
            raise SourceError(_HAS_MEMBERS, **where) from error
        raise SourceError(f"The broker answers: {reason.str()}", **where) from error


def _usable(tokens: CallbackTokens) -> CallbackTokens:
    """Wait for the first token: librdkafka would report a callback's error as silent brokers."""
    try:
        tokens.dated_token()
    except ProtocolError as error:
        raise explain(error) from error
    return tokens


def _state(found: ConsumerGroupState) -> str:
    return _STATES.get(found, found.name.capitalize())
