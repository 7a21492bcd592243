"""The fastest single process: confluent-kafka, ptars, pyarrow; a local file, no commit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from data import message_type
from ptars import HandlerPool, PtarsConfig

from archiving.side import Setting, Side

AT_ONCE = 10_000
HEADERS = pa.map_(pa.string(), pa.binary())
FETCHING = {
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 262_144,
    "fetch.message.max.bytes": 8 << 20,
    "enable.auto.commit": False,
    "enable.partition.eof": True,
}


class OneProcess(Side):
    def __init__(self, setting: Setting, *, headers: bool = True) -> None:
        super().__init__(setting)
        self.name = "one process" if headers else "one process, no headers"
        self._headers = headers
        self._decode = HandlerPool([message_type().file], PtarsConfig(enum_repr="string")).get_for_message(
            message_type()
        )

    def archive(self, topic: str) -> int:
        servers = {"bootstrap.servers": self.setting.endpoints.bootstrap_servers, "group.id": "bench"}
        consumer = Consumer({**servers, **FETCHING})
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        left, records, writer = len(partitions), 0, None
        while left:
            messages = consumer.consume(AT_ONCE, 0.2)
            left -= sum(1 for message in messages if message.error())
            rows = self._rows([message for message in messages if not message.error()])
            records += rows.num_rows
            writer = writer or pq.ParquetWriter(self.setting.folder / "one.parquet", rows.schema, compression="zstd")
            writer.write_batch(rows)
        consumer.close()
        if writer:
            writer.close()
        return records

    def _rows(self, messages: list[Message]) -> pa.RecordBatch:
        values = pa.array([message.value() for message in messages], pa.binary())
        decoded = self._decode.array_to_record_batch(values)
        columns = {
            "key": pa.array([message.key() for message in messages], pa.binary()),
            "partition": pa.array([message.partition() for message in messages], pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "timestamp": pa.array([message.timestamp()[1] for message in messages], pa.timestamp("ms", "UTC")),
            "value": decoded.to_struct_array(),
        }
        if self._headers:
            columns["headers"] = pa.array([message.headers() for message in messages], HEADERS)
        return pa.RecordBatch.from_pydict(columns)
