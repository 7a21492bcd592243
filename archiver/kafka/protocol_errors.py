"""Errors of Kafka's protocol: retries and explanations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import kafka.errors as kafka
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_exponential_jitter
from tenacity.stop import stop_base

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
from archiver.kafka.msk_iam import MskLoginFailed
from archiver.kafka.options import KafkaOptions

Answer = TypeVar("Answer")

_TIMEOUTS: Final = 2
_UNKNOWN_TOPIC_SECONDS: Final = 3.0
"""How long to retry an unknown topic. Brokers need about this long to hear of a new one; a misspelt one never comes."""

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
    kafka.UnknownBrokerIdError,  # our metadata is older than the broker
    kafka.UnknownError,  # an exception inside the broker; Kafka's consumers retry it too
    kafka.BrokerNotAvailableError,
)


def is_transient(error: BaseException) -> bool:
    return isinstance(error, kafka.KafkaError) and (error.retriable or isinstance(error, _TRANSIENT_TOO))


def refuses_credentials(error: BaseException) -> bool:
    """Every broker would refuse them."""
    return isinstance(error, _CREDENTIALS)


def _refusal(error: kafka.KafkaError) -> str:
    if isinstance(error, MskLoginFailed):
        return f"The login by IAM failed: {error.args[0]}"
    if isinstance(error, kafka.IllegalSaslStateError | kafka.SecurityDisabledError):
        return (
            f"The broker takes no login on this listener: {error}. Check security.protocol and the port in [kafka]: a"
            " listener without SASL needs plaintext or ssl, and sasl_plaintext or sasl_ssl need a listener with SASL"
        )
    return f"The broker refuses the credentials: {error}. Check sasl.* in [kafka]"


def explain(error: kafka.KafkaError, **where: Any) -> ArchiverError:
    """Notes of `error` name the brokers."""
    kind: type[ArchiverError]
    match error:
        case kafka.AuthorizationError():
            kind, text = AccessDenied, f"The broker refuses: {error}. Give the principal READ and DESCRIBE on the topic"
        case _ if refuses_credentials(error):
            kind, text = AccessDenied, _refusal(error)
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


def with_retries(options: KafkaOptions, attempt: Callable[[], Answer], **where: Any) -> Answer:
    """Retry for up to twice `socket.timeout.ms`: one request may take all of it.

    Raises the last error, as `explain` converts it.
    """
    retrying = Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_delay(_TIMEOUTS * options.request_timeout / 1000) | _UnknownForLong(),
        wait=wait_exponential_jitter(
            multiplier=options.retry_backoff / 1000,
            max=options.retry_backoff_max / 1000,
            jitter=options.retry_backoff / 1000,
        ),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except kafka.KafkaError as error:
        raise explain(error, **where) from error


class _UnknownForLong(stop_base):
    def __call__(self, retry_state: RetryCallState) -> bool:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        waited = retry_state.seconds_since_start or 0.0
        return isinstance(error, kafka.UnknownTopicOrPartitionError) and waited > _UNKNOWN_TOPIC_SECONDS
