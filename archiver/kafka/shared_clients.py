"""One client after the other for tasks that run one after the other: connections and their hellos are made once.

A new client connects twice, to find the cluster and to ask a leader, and each time asks what the broker understands.
For a small range that costs more than its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

from archiver.kafka.broker import BrokerClient

_Options: TypeAlias = tuple[tuple[str, str], ...]

_IDLE: Final = ContextVar[dict[_Options, BrokerClient] | None]("clients that nobody uses now", default=None)


@contextmanager
def sharing_clients() -> Iterator[None]:
    """In this block, keep clients that are no longer used for the next user. The end of the block closes them.

    The block belongs to its thread: others neither see nor use its clients.
    """
    idle: dict[_Options, BrokerClient] = {}
    before = _IDLE.set(idle)
    try:
        yield
    finally:
        _IDLE.reset(before)
        for client in idle.values():
            client.close()


@contextmanager
def client_of(options: Mapping[str, str]) -> Iterator[BrokerClient]:
    """A client that nobody else uses in this block. `options` have librdkafka's names.

    It may come from an earlier user with the same options, if both are in one block of `sharing_clients`. It is closed
    if the block ends with an exception: what failed in it, or is still under way, is nothing that the next one is told.
    """
    idle = _IDLE.get()
    key = tuple(sorted(options.items()))
    client = (idle or {}).pop(key, None) or BrokerClient(options)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    if idle is None or key in idle:
        client.close()
    else:
        idle[key] = client
