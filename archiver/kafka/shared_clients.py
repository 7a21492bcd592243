"""Clients that consecutive tasks share.

A new client connects twice, which costs more than a small range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Self, TypeAlias

from kafka.errors import KafkaError

from archiver.kafka.broker import BrokerClient

_Options: TypeAlias = tuple[tuple[str, str], ...]


class SharedClients:
    """Keeps idle clients until its block ends. For one thread."""

    def __init__(self, topics: Iterable[tuple[Mapping[str, str], str]]) -> None:
        self._topics = defaultdict[_Options, set[str]](set)
        for options, topic in topics:
            self._topics[_key(options)].add(topic)
        self._idle: dict[_Options, BrokerClient] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close all clients, even if closing one raises."""
        with ExitStack() as ending:
            for client in self._idle.values():
                ending.callback(client.close)

    @contextmanager
    def client(self, options: Mapping[str, str], topic: str) -> Iterator[BrokerClient]:
        """Borrow a client, whose description of the topic may be outdated.

        It is closed after an exception, because requests may be under way.
        """
        key = _key(options)
        client = self._idle.pop(key, None)
        try:
            if client is None:
                client = BrokerClient(options)
                with suppress(KafkaError):  # then the reader of each topic requests its description
                    client.leaders.refresh(sorted(self._topics.get(key, set()) | {topic}))
            else:
                client.leaders.outdate(topic)
            yield client
        except BaseException:
            if client is not None:
                client.close()
            raise
        if key in self._idle:
            client.close()
        else:
            self._idle[key] = client


def _key(options: Mapping[str, str]) -> _Options:
    return tuple(sorted(options.items()))
