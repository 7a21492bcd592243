"""Messages with the accessors of `confluent_kafka.Message`, each a row of a shared batch of records.

A column is converted to Python objects for all rows of the batch, when any message is first asked for it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError

from archiver.archive.records import ASSEMBLED

Header = tuple[str, bytes | None]


class MessageBatch:
    """The messages of a batch of records of one partition, column by column as Python lists."""

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
        """Offsets."""
        return self._column("offset")

    @cached_property
    def keys(self) -> list[bytes | None]:
        """Keys."""
        return self._column("key")

    @cached_property
    def values(self) -> list[bytes | None]:
        """Values."""
        return self._column("value")

    @cached_property
    def timestamps(self) -> list[int]:
        """Timestamps in ms."""
        return self._column("timestamp")

    @cached_property
    def timestamp_types(self) -> list[int]:
        """Kafka's timestamp types: -1, 0, 1."""
        return self._column("timestamp_type")

    @cached_property
    def leader_epochs(self) -> list[int | None]:
        """Leader epochs."""
        return self._column("leader_epoch")

    @cached_property
    def headers(self) -> list[list[Header] | None]:
        """Headers, None where a record has none. Names that aren't UTF-8 are decoded with `surrogateescape`."""
        column = self.records.column("headers")
        if len(column.flatten()) == 0:
            return [None] * len(self)
        return [
            [(pair["key"].decode("utf-8", "surrogateescape"), pair["value"]) for pair in pairs] or None
            for pairs in column.to_pylist()
        ]

    def _column(self, name: str) -> list[Any]:
        found: list[Any] = self.records.column(name).to_pylist()
        return found


class ReplayMessage:
    """What `poll` and `consume` return: a record, or an event such as the end of a partition.

    One thing differs from confluent_kafka's message: a header's name that isn't UTF-8 raises no error. It is a string
    that `name.encode("utf-8", "surrogateescape")` turns back into its bytes.
    """

    __slots__ = ("_batch", "_row")

    def __init__(self, batch: MessageBatch, row: int) -> None:
        self._batch = batch
        self._row = row

    def error(self) -> KafkaError | None:
        """Error of an event, None for a record."""
        return self._given("error") if self._batch.replaced else None

    def topic(self) -> str:
        """Topic."""
        return self._given("topic", self._batch.topic) if self._batch.replaced else self._batch.topic

    def partition(self) -> int:
        """Partition."""
        return self._batch.partition

    def offset(self) -> int:
        """Offset."""
        return self._batch.offsets[self._row]

    def key(self) -> Any:
        """Key as bytes, None for a null one."""
        own = self._batch.keys[self._row]
        return self._given("key", own) if self._batch.replaced else own

    def value(self) -> Any:
        """Value as bytes, None for a tombstone."""
        own = self._batch.values[self._row]
        return self._given("value", own) if self._batch.replaced else own

    def headers(self) -> list[Header] | None:
        """Headers in order, None where there is none."""
        own = self._batch.headers[self._row]
        return self._given("headers", own) if self._batch.replaced else own

    def timestamp(self) -> tuple[int, int]:
        """Timestamp type by confluent_kafka's constants, and the timestamp in ms."""
        return self._batch.timestamp_types[self._row] + 1, self._batch.timestamps[self._row]

    def leader_epoch(self) -> int | None:
        """Leader epoch that the record was written in, None where it isn't known."""
        epoch = self._batch.leader_epochs[self._row]
        return None if epoch is None or epoch < 0 else epoch

    def latency(self) -> float | None:
        """None: a replay produces nothing."""
        return None

    def delivery_count(self) -> int | None:
        """None: an archive counts no deliveries."""
        return None

    def set_key(self, key: Any) -> None:
        """Replace the key, as deserializers do."""
        self._replace("key", key)

    def set_value(self, value: Any) -> None:
        """Replace the value, as deserializers do."""
        self._replace("value", value)

    def set_headers(self, headers: Any) -> None:
        """Replace the headers."""
        self._replace("headers", headers)

    def set_topic(self, topic: str) -> None:
        """Replace the topic."""
        self._replace("topic", topic)

    def set_error(self, error: KafkaError | None) -> None:
        """Replace the error."""
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
    """An event at an offset: it has a topic, partition, offset and `error()`; everything else is None."""

    __slots__ = ("_offset",)

    def __init__(self, topic: str, partition: int, offset: int, error: KafkaError) -> None:
        super().__init__(MessageBatch(topic, partition, _NOTHING), 0)
        self._offset = offset
        self.set_error(error)

    def offset(self) -> int:
        """Offset of the event."""
        return self._offset

    def key(self) -> bytes | None:
        """None."""
        return None

    def value(self) -> bytes | None:
        """Text of the error, as in confluent_kafka."""
        error = self.error()
        return None if error is None else str(error.str()).encode()

    def headers(self) -> list[Header] | None:
        """None."""
        return None

    def timestamp(self) -> tuple[int, int]:
        """No timestamp."""
        return 0, -1

    def leader_epoch(self) -> int | None:
        """None."""
        return None

    def __len__(self) -> int:
        return len(self.value() or b"")
