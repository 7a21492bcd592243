"""`archiver serve flight` in a process, and pyarrow's client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.binary()), ("timestamp", pa.timestamp("ms", "UTC"))])


@dataclass(frozen=True, slots=True)
class FlightProcess:
    process: subprocess.Popen[str]
    address: str


@contextmanager
def flight_process(config: Path, *, fault: str | None = None) -> Iterator[FlightProcess]:
    command = [sys.executable, "-m", "archiver", "serve", "flight", "--listen", "127.0.0.1:0", "--json"]
    environment = os.environ | ({"ARCHIVER_FAULT": fault} if fault else {})
    with subprocess.Popen(
        [*command, "--config", str(config)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield FlightProcess(process, json.loads(line)["address"])
        finally:
            process.terminate()
            process.wait(60)


def records(start: int, count: int) -> pa.RecordBatch:
    numbers = range(start, start + count)
    columns = [[f"key-{number % 7}" for number in numbers], [b"value-%d" % number for number in numbers], list(numbers)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def put(
    address: str,
    path: str | Sequence[str],
    batches: Iterable[tuple[dict[str, Any], pa.RecordBatch]],
    *,
    schema: pa.Schema = SCHEMA,
    options: flight.FlightCallOptions | None = None,
) -> list[dict[str, Any]]:
    """Send batches one by one; return the answers. Raises pyarrow's errors. `path` begins with the topic."""
    parts = (path,) if isinstance(path, str) else path
    with flight.FlightClient(f"grpc://{address}") as client:
        writer, reader = client.do_put(flight.FlightDescriptor.for_path(*parts), schema, options)
        answers = []
        with writer:
            for metadata, batch in batches:
                writer.write_with_metadata(batch, json.dumps(metadata).encode())
                answer = reader.read()
                if answer is None:  # the stream ended: closing it raises why
                    break
                answers.append(json.loads(answer.to_pybytes()))
        return answers


def act(address: str, kind: str, **values: Any) -> dict[str, Any]:
    with flight.FlightClient(f"grpc://{address}") as client:
        (result,) = client.do_action(flight.Action(kind, json.dumps(values).encode()))
        answer: dict[str, Any] = json.loads(result.body.to_pybytes())
        return answer
