"""Messages with the accessors of `confluent_kafka.Message`, each a row of a shared batch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError

from archiver.archive.records import ASSEMBLED

Header = tuple[str, bytes | None]


class MessageBatch:
    def __init__(self, topic: str, partition: int, records: pa.RecordBatch) -> None:
        self.topic = topic
        self.partition = partition
        self.records = records
        self.replaced: dict[tuple[int, str], Any] = {}
        """The values that setters of messages have set, by row and attribute."""

    def __len__(self) -> int:
        return int(self.records.num_rows)

    @cached_property
    def offsets(self) -> list[int]:
        return self._column("offset")

    @cached_property
    def keys(self) -> list[bytes | None]:
        return self._column("key")

    @cached_property
    def values(self) -> list[bytes | None]:
        return self._column("value")

    @cached_property
    def timestamps(self) -> list[int]:
        return self._column("timestamp")

    @cached_property
    def timestamp_types(self) -> list[int]:
        return self._column("timestamp_type")

    @cached_property
    def leader_epochs(self) -> list[int | None]:
        return self._column("leader_epoch")

    @cached_property
    def headers(self) -> list[list[Header] | None]:
        """None if a record has none. Names that aren't UTF-8 are decoded with `surrogateescape`."""
        column = self.records.column("headers")
        if len(column.flatten()) == 0:
            return [None] * len(self)
        return [
            [(pair["key"].decode("utf-8", "surrogateescape"), pair["value"]) for pair in pairs] or None
            for pairs in column.to_pylist()
        ]

    def _column(self, name: str) -> list[Any]:
        values: list[Any] = self.records.column(name).to_pylist()
        return values


class ReplayMessage:
    """A record, or an event such as the end of a partition.

    A header's name that isn't UTF-8 raises no error: encode it with `surrogateescape`.
    """

    __slots__ = ("_batch", "_row")

    def __init__(self, batch: MessageBatch, row: int) -> None:
        self._batch = batch
        self._row = row

    def error(self) -> KafkaError | None:
        return self._given("error") if self._batch.replaced else None

    def topic(self) -> str:
        return self._given("topic", self._batch.topic) if self._batch.replaced else self._batch.topic

    def partition(self) -> int:
        return self._batch.partition

    def offset(self) -> int:
        return self._batch.offsets[self._row]

    def key(self) -> Any:
        own = self._batch.keys[self._row]
        return self._given("key", own) if self._batch.replaced else own

    def value(self) -> Any:
        own = self._batch.values[self._row]
        return self._given("value", own) if self._batch.replaced else own

    def headers(self) -> list[Header] | None:
        own = self._batch.headers[self._row]
        return self._given("headers", own) if self._batch.replaced else own

    def timestamp(self) -> tuple[int, int]:
        return self._batch.timestamp_types[self._row] + 1, self._batch.timestamps[self._row]

    def leader_epoch(self) -> int | None:
        epoch = self._batch.leader_epochs[self._row]
        return None if epoch is None or epoch < 0 else epoch

    def latency(self) -> float | None:
        return None

    def delivery_count(self) -> int | None:
        return None

    def set_key(self, key: Any) -> None:
        self._replace("key", key)

    def set_value(self, value: Any) -> None:
        self._replace("value", value)

    def set_headers(self, headers: Any) -> None:
        self._replace("headers", headers)

    def set_topic(self, topic: str) -> None:
        self._replace("topic", topic)

    def set_error(self, error: KafkaError | None) -> None:
        self._replace("error", error)

    def __len__(self) -> int:
        return len(self._batch.values[self._row] or b"")

    def __repr__(self) -> str:
        return f"ReplayMessage({self.topic()}[{self.partition()}] @ {self.offset()})"

    def _given(self, name: str, own: Any = None) -> Any:
        return self._batch.replaced.get((self._row, name), own)

    def _replace(self, name: str, value: Any) -> None:
        self._batch.replaced[self._row, name] = value


_NOTHING = pa.RecordBatch.from_pylist([], schema=ASSEMBLED)


class ReplayEvent(ReplayMessage):
    __slots__ = ("_offset",)

    def __init__(self, topic: str, partition: int, offset: int, error: KafkaError) -> None:
        super().__init__(MessageBatch(topic, partition, _NOTHING), 0)
        self._offset = offset
        self.set_error(error)

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes | None:
        error = self.error()
        return None if error is None else str(error.str()).encode()

    def headers(self) -> list[Header] | None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 0, -1

    def leader_epoch(self) -> int | None:
        return None

    def __len__(self) -> int:
        return len(self.value() or b"")
