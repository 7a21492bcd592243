"""One client for tasks that run one after the other: it connects once, and asks about all their topics at once.

A new client connects twice, to find the cluster and to ask a leader, and each time asks what the broker understands.
For a small range that costs more than its records.
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
    """A block's topics, and its clients that nobody uses now."""

    topics: Mapping[_Options, set[str]]
    idle: dict[_Options, BrokerClient] = field(default_factory=dict)


_BLOCK: Final = ContextVar[_Block | None]("the block of sharing_clients", default=None)


@contextmanager
def sharing_clients(topics: Iterable[tuple[Mapping[str, str], str]]) -> Iterator[None]:
    """In this block, keep clients that are no longer used for the next user. The end of the block closes them.

    If one of them can't be closed, the others are closed all the same before its error is raised.

    `topics` are those that will be read, each with the options that lead to it. The block belongs to its thread: others
    neither see nor use its clients.
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
    """A client to read this topic with, which nobody else uses. `options` have librdkafka's names.

    It may come from an earlier user with the same options, if both are in one block of `sharing_clients`. What it knows
    of the topic is outdated then. It is closed if this block ends with an exception: what failed in it, or is still
    under way, is nothing that the next one is told.
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
            with suppress(KafkaError):  # then each of them is asked about by who reads it
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
