"""Messages of DoPut without pyarrow's client."""

from __future__ import annotations

import json

import pyarrow as pa
from pyarrow import ipc

from archiver.flight.messages import bytes_field


def flight_data(*, topic: str = "sensors", header: bytes = b"", metadata: bytes = b"", body: bytes = b"") -> bytes:
    return (
        bytes_field(1, bytes_field(3, topic.encode()))
        + bytes_field(2, header)
        + bytes_field(3, metadata)
        + bytes_field(1000, body)
    )


def put_messages(rows: pa.RecordBatch, count: int, *, compression: str | None = None) -> list[bytes]:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, rows.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(rows)
    schema, batch = (
        (bytes(part.metadata), bytes(part.body or b"")) for part in ipc.MessageReader.open_stream(sink.getvalue())
    )
    metadata = [json.dumps({"client": "a", "batch_id": number}).encode() for number in range(count)]
    batches = [flight_data(header=batch[0], metadata=text, body=batch[1]) for text in metadata]
    return [flight_data(header=schema[0]), *batches]
