"""What the protocol's errors mean to the person who reads them, and which of them time may heal."""

from __future__ import annotations

from typing import Any, Final

import kafka.errors as kafka

from archiver.errors import (
    AccessDenied,
    ArchiverError,
    BrokerUnavailable,
    ConfigError,
    CorruptBatch,
    LeaderUnavailable,
    SourceError,
    UnknownTopic,
)

_CREDENTIALS: Final = (
    kafka.SaslAuthenticationFailedError,
    kafka.UnsupportedSaslMechanismError,
    kafka.IllegalSaslStateError,
    kafka.SecurityDisabledError,
)
_UNREACHABLE: Final = (
    kafka.KafkaConnectionError,
    kafka.KafkaTimeoutError,
    kafka.NodeNotReadyError,
    kafka.RequestTimedOutError,
    kafka.MetadataEmptyBrokerList,
    kafka.Cancelled,
    kafka.CorrelationIdError,
)
_TRANSIENT_TOO: Final = (
    kafka.UnknownBrokerIdError,  # the metadata is older than the broker
    kafka.UnknownError,  # the broker's own exception, as consumers take it
    kafka.BrokerNotAvailableError,
)


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment, perhaps at another broker."""
    return isinstance(error, kafka.KafkaError) and (error.retriable or isinstance(error, _TRANSIENT_TOO))


def refuses_credentials(error: BaseException) -> bool:
    """Whether the broker refused who we are; another broker would too."""
    return isinstance(error, _CREDENTIALS)


def explain(error: kafka.KafkaError, **where: Any) -> ArchiverError:
    """The error of our own tree for one of the protocol, saying what to do; its notes are the brokers it came from."""
    kind: type[ArchiverError]
    match error:
        case kafka.AuthorizationError():
            kind, text = AccessDenied, f"The broker refuses: {error}. Give the principal READ and DESCRIBE on the topic"
        case _ if refuses_credentials(error):
            kind, text = AccessDenied, f"The broker refuses the credentials: {error}. Check sasl.* in [kafka]"
        case kafka.UnknownTopicOrPartitionError() | kafka.InvalidTopicError():
            kind, text = UnknownTopic, "The topic or partition does not exist, or the principal may not DESCRIBE it"
        case kafka.InvalidReceiveError():
            kind, text = (
                ConfigError,
                (
                    f"The broker's answer is larger than receive.message.max.bytes, or not Kafka's protocol: {error}. "
                    "Raise it in [kafka], or check that security.protocol is the listener's"
                ),
            )
        case kafka.UnsupportedVersionError():
            kind, text = (
                SourceError,
                f"Broker and archiver share no version of a request: {error}. Upgrade the older",
            )
        case kafka.CorruptRecordError():
            kind, text = CorruptBatch, "The broker reports that its own log is corrupt here: look at its disk"
        case _ if isinstance(error, _UNREACHABLE):
            kind, text = BrokerUnavailable, f"The broker does not answer: {error}"
        case _ if is_transient(error):
            kind, text = LeaderUnavailable, f"The partition has no leader that answers: {error}"
        case _:
            kind, text = SourceError, f"The broker answers with {error}"
    if brokers := getattr(error, "__notes__", None):
        where = {"broker": ", ".join(brokers)} | where
    return kind(text, **where)
