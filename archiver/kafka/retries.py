"""Trying again, with growing pauses and jitter, what time may heal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from kafka.errors import KafkaError, UnknownTopicOrPartitionError
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_exponential_jitter
from tenacity.stop import stop_base

from archiver.kafka.error_codes import explain, is_transient
from archiver.kafka.options import KafkaOptions

Answer = TypeVar("Answer")

_TIMEOUTS: Final = 2
_UNKNOWN_TOPIC_SECONDS: Final = 3.0
"""How long a topic may be unknown: as long as brokers take to hear of a new one, since a misspelt one never comes."""


def with_retries(options: KafkaOptions, attempt: Callable[[], Answer], **where: Any) -> Answer:
    """Repeat `attempt` while its errors are transient, for twice `socket.timeout.ms`: one request may time out whole.

    Raises what `explain` makes of the last error, with `where` as its context.
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
    except KafkaError as error:
        raise explain(error, **where) from error


class _UnknownForLong(stop_base):
    def __call__(self, retry_state: RetryCallState) -> bool:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        waited = retry_state.seconds_since_start or 0.0
        return isinstance(error, UnknownTopicOrPartitionError) and waited > _UNKNOWN_TOPIC_SECONDS
