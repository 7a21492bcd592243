"""Clients that consecutive tasks share.

A new client connects twice, which costs more than a small range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kafka.errors import KafkaError

from archiver.kafka.broker import BrokerClient

_Options: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Block:
    topics: Mapping[_Options, set[str]]
    idle: dict[_Options, BrokerClient] = field(default_factory=dict)


_BLOCK: Final = ContextVar[_Block | None]("the block of sharing_clients", default=None)


@contextmanager
def sharing_clients(topics: Iterable[tuple[Mapping[str, str], str]]) -> Iterator[None]:
    """Keep idle clients for the next user until the block ends.

    All are closed, even if closing one raises. `topics` will be read. Clients belong to one thread.
    """
    named = defaultdict[_Options, set[str]](set)
    for options, topic in topics:
        named[_key(options)].add(topic)
    block = _Block(named)
    before = _BLOCK.set(block)
    try:
        yield
    finally:
        _BLOCK.reset(before)
        with ExitStack() as ending:
            for client in block.idle.values():
                ending.callback(client.close)


@contextmanager
def client_for(options: Mapping[str, str], topic: str) -> Iterator[BrokerClient]:
    """Borrow a client. It is closed after an exception, as requests may still be under way.

    It may be an earlier user's; its description of the topic is outdated then.
    """
    block = _BLOCK.get()
    if block is None:
        with BrokerClient(options) as own:
            yield own
        return
    key = _key(options)
    client = block.idle.pop(key, None)
    try:
        if client is None:
            client = BrokerClient(options)
            with suppress(KafkaError):  # then the reader of each topic requests its description
                client.leaders.refresh(sorted(block.topics.get(key, set()) | {topic}))
        else:
            client.leaders.outdate(topic)
        yield client
    except BaseException:
        if client is not None:
            client.close()
        raise
    if key in block.idle:
        client.close()
    else:
        block.idle[key] = client


def _key(options: Mapping[str, str]) -> _Options:
    return tuple(sorted(options.items()))
