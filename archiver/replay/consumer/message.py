"""Messages with the accessors of `confluent_kafka.Message`, as views of a batch of records.

A column becomes Python objects when the first message of its batch is asked for it, all rows at once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError

from archiver.archive.records import ASSEMBLED

Header = tuple[str, bytes | None]


class BatchView:
    """A batch of assembled records of one topic and partition, as lists."""

    def __init__(self, topic: str, partition: int, batch: pa.RecordBatch) -> None:
        self.topic = topic
        self.partition = partition
        self.batch = batch
        self.replaced: dict[tuple[int, str], Any] = {}
        """What setters of a message put in the place of its own, by row and name."""

    def __len__(self) -> int:
        return int(self.batch.num_rows)

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
        """Headers, None where a record has none; names that aren't UTF-8 by `surrogateescape`."""
        column = self.batch.column("headers")
        if len(column.flatten()) == 0:
            return [None] * len(self)
        return [
            [(pair["key"].decode("utf-8", "surrogateescape"), pair["value"]) for pair in pairs] or None
            for pairs in column.to_pylist()
        ]

    def _column(self, name: str) -> list[Any]:
        found: list[Any] = self.batch.column(name).to_pylist()
        return found


class ReplayMessage:
    """A record, or an event such as the end of a partition: what `poll` and `consume` give.

    Differs from confluent_kafka's in one thing: a header's name that isn't UTF-8 is no error, but a string that
    `name.encode("utf-8", "surrogateescape")` turns back into its bytes.
    """

    __slots__ = ("_row", "_view")

    def __init__(self, view: BatchView, row: int) -> None:
        self._view = view
        self._row = row

    def error(self) -> KafkaError | None:
        """None for a record."""
        return self._given("error") if self._view.replaced else None

    def topic(self) -> str:
        """Topic."""
        return self._given("topic", self._view.topic) if self._view.replaced else self._view.topic

    def partition(self) -> int:
        """Partition."""
        return self._view.partition

    def offset(self) -> int:
        """Offset."""
        return self._view.offsets[self._row]

    def key(self) -> Any:
        """Key as bytes, None for a null one."""
        own = self._view.keys[self._row]
        return self._given("key", own) if self._view.replaced else own

    def value(self) -> Any:
        """Value as bytes, None for a tombstone."""
        own = self._view.values[self._row]
        return self._given("value", own) if self._view.replaced else own

    def headers(self) -> list[Header] | None:
        """Headers in order, None where there is none."""
        own = self._view.headers[self._row]
        return self._given("headers", own) if self._view.replaced else own

    def timestamp(self) -> tuple[int, int]:
        """Timestamp type by confluent_kafka's constants, and the timestamp in ms."""
        return self._view.timestamp_types[self._row] + 1, self._view.timestamps[self._row]

    def leader_epoch(self) -> int | None:
        """Leader epoch the record was written in, None where unknown."""
        epoch = self._view.leader_epochs[self._row]
        return None if epoch is None or epoch < 0 else epoch

    def latency(self) -> float | None:
        """None: nothing was produced."""
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
        return len(self._view.values[self._row] or b"")

    def __repr__(self) -> str:
        return f"ReplayMessage({self.topic()}[{self.partition()}] @ {self.offset()})"

    def _given(self, name: str, own: Any = None) -> Any:
        return self._view.replaced.get((self._row, name), own)

    def _replace(self, name: str, value: Any) -> None:
        self._view.replaced[self._row, name] = value


_NOTHING = pa.RecordBatch.from_pylist([], schema=ASSEMBLED)


class ReplayEvent(ReplayMessage):
    """An error or event at an offset: everything but its place and `error()` is None."""

    __slots__ = ("_offset",)

    def __init__(self, topic: str, partition: int, offset: int, error: KafkaError) -> None:
        super().__init__(BatchView(topic, partition, _NOTHING), 0)
        self._offset = offset
        self.set_error(error)

    def offset(self) -> int:
        """Offset at which it happened."""
        return self._offset

    def key(self) -> bytes | None:
        """None."""
        return None

    def value(self) -> bytes | None:
        """Text of the error, as confluent_kafka has it."""
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
