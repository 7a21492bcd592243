"""`[flight]`, and the rules of `source = "flight"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, Self

from pydantic import Field, model_validator

from archiver.config.formats import FormatSection, RawFormat
from archiver.config.quantities import Bytes, Seconds
from archiver.config.section import Section

LISTEN: Final = r"^(\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):\d{1,5}$"
MOST_PARTITIONS: Final = 1024
_SEGMENTS: Final = 4
_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


class FlightSection(Section):
    listen: str = Field(
        default="127.0.0.1:9193",
        pattern=LISTEN,
        description="an address to listen on: write HOST:PORT, such as 127.0.0.1:9193",
    )
    metrics: str | None = Field(
        default=None,
        pattern=LISTEN,
        description="an address to listen on: write HOST:PORT, such as 127.0.0.1:9466",
    )
    wal: Path | None = None
    wal_size: Bytes = Field(default=4 << 30, ge=1 << 20)
    segment_size: Bytes = Field(default=64 << 20, ge=1 << 20, le=1 << 30)
    max_message_size: Bytes = Field(default=64 << 20, ge=64 << 10, le=256 << 20)
    memory: Bytes = Field(default=256 << 20, ge=1 << 20)
    receive_memory: Bytes | None = Field(default=None, ge=1 << 20)
    max_streams: int = Field(default=256, ge=1, le=10_000)
    window: int = Field(default=16, ge=1, le=64)
    max_clients: int = Field(default=1_000, ge=1, le=10_000)
    session: Seconds = Field(default=3600.0, ge=60.0, le=7 * 86400.0)

    @model_validator(mode="after")
    def _room_for_segments(self) -> Self:
        if self.wal_size < _SEGMENTS * max(self.segment_size, self.max_message_size):
            raise ValueError(
                f"`wal_size` must be {_SEGMENTS} times `segment_size` and `max_message_size` or more: the open segment"
                " stays until the next one is full"
            )
        return self

    @model_validator(mode="after")
    def _room_for_messages(self) -> Self:
        needed = self.max_streams * self.max_message_size
        if self.receive_memory is not None and needed > self.receive_memory:
            raise ValueError(
                f"`max_streams` messages of `max_message_size` need {needed >> 20:,} MiB while they arrive, more than"
                f" `receive_memory` ({self.receive_memory >> 20:,} MiB): lower one of the first two, or raise the last"
            )
        return self


def needs_kafka(defaults: Mapping[str, object], topics: Mapping[str, Mapping[str, object]]) -> bool:
    """False if all topics have `source = "flight"`."""
    sources = {{**defaults, **topic}.get("source", "kafka") for topic in topics.values()}
    return sources != {"flight"}


class SourcedTopic(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def partitions(self) -> int | None: ...

    @property
    def start_from(self) -> object: ...

    @property
    def key_column(self) -> str | None: ...

    @property
    def value(self) -> FormatSection: ...


def check_flight_topic(topic: SourcedTopic) -> None:
    """Raises ValueError if the settings contradict the source."""
    _check_key_column(topic)
    if topic.source == "kafka":
        if topic.partitions is not None:
            raise ValueError('`partitions` goes with source = "flight": Kafka has the partitions of its topics')
        return
    if topic.partitions is None:
        raise ValueError(f'source = "flight" needs `partitions`, from 1 to {MOST_PARTITIONS:,}')
    if _NAME.fullmatch(topic.name) is None:
        raise ValueError("the topic's name is no name of a Kafka topic: write up to 249 letters, digits, dots, - and _")
    for key in ("on_parse_error", "on_unrecognized"):
        if getattr(topic, key) == "halt":
            raise ValueError(
                f'{key} = "halt" goes with source = "kafka": rows of Flight clients are acknowledged before they are'
                " decoded, so nothing can halt them"
            )
    for key in ("compact", "expire"):
        if getattr(topic, key) == "auto":
            raise ValueError(f'{key} = "auto" goes with source = "kafka": run `archiver {key}` by a timer instead')
    if topic.start_from != "earliest":
        raise ValueError('`start_from` goes with source = "kafka": topics with source = "flight" begin at offset 0')


def _check_key_column(topic: SourcedTopic) -> None:
    if isinstance(topic.value, RawFormat) and topic.value.column is not None:
        raise ValueError("`column` goes with `key`: it names the column of the values that has the keys")
    if topic.key_column is None:
        return
    if topic.source == "kafka":
        raise ValueError('a column as `key` goes with source = "flight": records of Kafka have keys')
    if not topic.value.has_schema:
        raise ValueError("a column as `key` needs a format of `value` with a schema: protobuf, avro or json")
