"""Connections to the brokers of one cluster, without threads.

Each call is one attempt; only finding the cluster tries all bootstrap addresses, until
`socket.connection.setup.timeout.ms`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MetadataEmptyBrokerList,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from archiver.errors import BrokerUnavailable
from archiver.kafka.msk_iam import MskIdentity
from archiver.kafka.options import KafkaOptions
from archiver.kafka.protocol_errors import explain, is_transient, refuses_credentials
from archiver.kafka.sockets import SCHEME

_THROTTLE_SLACK: Final = 0.01
_OLDER_API_VERSIONS: Final = (3, 0)
"""Versions of the first request, tried on new connections if a broker hangs up instead of answering a newer one."""
_HINT: Final = "Check bootstrap.servers, the network between, and security.protocol, in [kafka]"


def _is_above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


logging.getLogger("kafka").addHandler(logging.NullHandler())
for _name in ("kafka.protocol.parser", "kafka.net.connection"):
    logging.getLogger(_name).addFilter(_is_above_debug)  # their debug lines show whole requests, with credentials


class Cluster:
    """Serializes calls from several threads."""

    def __init__(self, options: KafkaOptions) -> None:
        self.options = options
        configuration = options.client_configuration()
        provider = configuration["sasl_oauth_token_provider"]
        self._identity = provider if isinstance(provider, MskIdentity) else None
        if self._identity is not None:
            _check_identity(self._identity)
        # no warnings about slow steps: only this client uses the loop, and one step reads a whole response
        self._net = NetworkSelector(client_id=options.client_id, slow_task_threshold_secs=0)
        self._manager = KafkaConnectionManager(self._net, proxy_url=f"{SCHEME}://", **configuration)
        self._not_before: dict[int | str, float] = {}
        self._api_versions: int | None = None  # the version of ApiVersions that brokers answer; None: the newest
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._manager.close()
            self._net.close()

    def address(self, node: int | str) -> str:
        broker = self._manager.cluster.broker_metadata(node)
        return f"{broker.host}:{broker.port}" if broker is not None else f"broker {node}"

    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted(broker.node_id for broker in self._manager.cluster.brokers()))

    def ask(self, request: Any, node: int | str) -> Any:
        """Raises the protocol library's errors, with the broker's address as a note."""
        try:
            return self._run(request, node, self.options.connect_timeout)
        except KafkaError as error:
            error.add_note(self.address(node))
            raise

    def disconnect(self, node: int | str) -> None:
        with self._lock:
            self._manager.close(node)

    def metadata(self, topics: tuple[str, ...] | None) -> Any:
        """Raises BrokerUnavailable, AccessDenied."""

        def request() -> Any:
            named = MetadataRequest.ALL_TOPICS
            if topics is not None:
                named = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
            return MetadataRequest(topics=named, allow_auto_topic_creation=False)

        response = self.ask_any(request)
        if not response.brokers:
            raise MetadataEmptyBrokerList
        self._manager.cluster.update_metadata(response)
        return response

    def ask_any(self, request: Callable[[], Any]) -> Any:
        """Raises BrokerUnavailable, AccessDenied."""
        brokers = self._manager.cluster.brokers()
        random.shuffle(brokers)
        for broker in brokers:
            try:
                return self.ask(request(), broker.node_id)
            except KafkaError as error:
                self._give_up_unless_transient(error, broker.node_id)
        return self._ask_bootstrap(request)

    def _ask_bootstrap(self, request: Callable[[], Any]) -> Any:
        brokers = self._manager.cluster.bootstrap_brokers()
        random.shuffle(brokers)
        deadline = time.monotonic() + self.options.connect_timeout / 1000
        reasons: dict[str, str] = {}
        while True:
            for index, broker in enumerate(brokers):
                timeout_ms = (deadline - time.monotonic()) * 1000 / (len(brokers) - index)
                if timeout_ms <= 0:
                    break
                until = time.monotonic() + timeout_ms / 1000
                try:
                    return self._run(request(), broker.node_id, timeout_ms)
                except KafkaError as error:
                    self._give_up_unless_transient(error, broker.node_id)
                    address = self.address(broker.node_id)
                    # The last attempt may fail only because time is up: then an earlier one says more.
                    is_late = isinstance(error, KafkaTimeoutError) or time.monotonic() >= until
                    if address not in reasons or not is_late:
                        reasons[address] = str(error)
                finally:
                    self._manager.close(broker.node_id)
            if time.monotonic() >= deadline:
                raise BrokerUnavailable(f"No broker answers. {_HINT}", addresses=reasons)
            time.sleep(min(self.options.retry_backoff / 1000, max(0.0, deadline - time.monotonic())))

    def _give_up_unless_transient(self, error: KafkaError, node: int | str) -> None:
        if refuses_credentials(error) or not is_transient(error):
            raise explain(error, broker=self.address(node)) from error

    def _run(self, request: Any, node: int | str, connect_timeout: float) -> Any:
        with self._lock:
            return self._net.run(self._exchange, request, node, connect_timeout)

    async def _exchange(self, request: Any, node: int | str, connect_timeout: float) -> Any:
        deadline = time.monotonic() + connect_timeout / 1000
        connection = await self._connection(node, deadline, self._api_versions)
        response = await connection.send_request(request, request_timeout_ms=self.options.request_timeout)
        if throttle := getattr(response, "throttle_time_ms", 0):
            self._not_before[node] = time.monotonic() + throttle / 1000 + _THROTTLE_SLACK
        return response

    async def _connection(self, node: int | str, deadline: float, version: int | None) -> Any:
        """`version` is the version of ApiVersions to begin with.

        Some brokers hang up at unknown versions (dpkp/kafka-python#2602): then an older one is tried.
        """
        await self._pause(node)
        timeout_ms = max(0.0, (deadline - time.monotonic()) * 1000)
        connection = self._manager.get_connection(node, timeout_ms=timeout_ms, refresh_metadata_on_err=False)
        if version is not None and connection.initializing and connection.transport is None:
            connection.broker_version_data, connection._api_versions_idx = None, version  # noqa: SLF001
        try:
            await self._manager.wait_for(connection.init_future, timeout_ms)
        except KafkaTimeoutError:
            connection.close(KafkaConnectionError("no answer while connecting"))
            raise
        except (OSError, ValueError, KafkaConnectionError) as error:
            older = _older(connection, version)
            if older is not None and time.monotonic() < deadline:
                self._manager.reset_backoff(node)
                return await self._connection(node, deadline, older)
            raise error if isinstance(error, KafkaConnectionError) else KafkaConnectionError(str(error)) from error
        except (SaslAuthenticationFailedError, UnsupportedSaslMechanismError) as error:
            raise error if self._identity is None else self._identity.explain(error) from error
        self._api_versions = version
        return connection

    async def _pause(self, node: int | str) -> None:
        wait = max(self._not_before.pop(node, 0) - time.monotonic(), self._manager.connection_delay(node))
        if wait > 0:
            await self._net.sleep(wait)


def _check_identity(identity: MskIdentity) -> None:
    """Raises AccessDenied without credentials. If AWS is silent, logins try again."""
    try:
        with suppress(KafkaConnectionError):
            identity.credentials()
    except KafkaError as error:
        raise explain(error) from error


def _older(connection: Any, version: int | None) -> int | None:
    if connection.parser is None or connection.broker_version_data is not None:
        return None
    return next((older for older in _OLDER_API_VERSIONS if version is None or older < version), None)
