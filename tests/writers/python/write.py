"""Reads each value by its schema and writes it again, with a library of Python: write.py LIBRARY.

Standard input and output are framed as tests/java/AvroJudge.java says.
"""

from __future__ import annotations

import importlib
import io
import json
import struct
import sys
from collections.abc import Callable
from typing import Any

import dotnet

Write = Callable[[bytes], bytes]


def of_fastavro(schema: str) -> Write:
    fastavro = importlib.import_module("fastavro")
    parsed = fastavro.parse_schema(json.loads(schema))

    def write(value: bytes) -> bytes:
        output = io.BytesIO()
        datum = fastavro.schemaless_reader(io.BytesIO(value), parsed, None, return_record_name=True)
        fastavro.schemaless_writer(output, parsed, datum)
        return output.getvalue()

    return write


def of_avro(schema: str) -> Write:
    parsed = importlib.import_module("avro.schema").parse(schema)
    streams = importlib.import_module("avro.io")

    def write(value: bytes) -> bytes:
        output = io.BytesIO()
        datum = streams.DatumReader(parsed).read(streams.BinaryDecoder(io.BytesIO(value)))
        streams.DatumWriter(parsed).write(datum, streams.BinaryEncoder(output))
        return output.getvalue()

    return write


def of_json(**options: Any) -> Callable[[str], Write]:
    return lambda _: lambda value: json.dumps(json.loads(value), **options).encode()


def of_orjson(_: str) -> Write:
    orjson = importlib.import_module("orjson")
    return lambda value: bytes(orjson.dumps(orjson.loads(value)))


def of_msgspec(_: str) -> Write:
    msgspec = importlib.import_module("msgspec")
    return lambda value: bytes(msgspec.json.encode(msgspec.json.decode(value)))


LIBRARIES: dict[str, Callable[[str], Write]] = {
    "fastavro": of_fastavro,
    "avro": of_avro,
    "json": of_json(),
    "json-compact": of_json(separators=(",", ":"), ensure_ascii=False),
    "json-sorted": of_json(sort_keys=True, separators=(",", ":")),
    "json-indented": of_json(indent=2),
    "orjson": of_orjson,
    "msgspec": of_msgspec,
    "system-text-json": lambda _: lambda value: dotnet.system_text_json(json.loads(value)).encode(),
    "newtonsoft": lambda _: lambda value: dotnet.newtonsoft(json.loads(value)).encode(),
}


def frame() -> bytes:
    (size,) = struct.unpack(">i", sys.stdin.buffer.read(4))
    return sys.stdin.buffer.read(size)


def number() -> int:
    (count,) = struct.unpack(">i", sys.stdin.buffer.read(4))
    return int(count)


def main(library: str) -> None:
    for _ in range(number()):
        schema = frame().decode()
        values = [frame() for _ in range(number())]
        try:
            write = LIBRARIES[library](schema)
        except Exception as error:  # noqa: BLE001 - libraries have errors of many classes
            print(f"{library} refuses a schema: {error!r}", file=sys.stderr)  # noqa: T201
            write = None
        for value in values:
            answer(library, write, value)


def answer(library: str, write: Write | None, value: bytes) -> None:
    try:
        written = None if write is None else write(value)
    except Exception as error:  # noqa: BLE001
        print(f"{library} refuses a value: {error!r}", file=sys.stderr)  # noqa: T201
        written = None
    sys.stdout.buffer.write(struct.pack(">i", -1) if written is None else struct.pack(">i", len(written)) + written)


if __name__ == "__main__":
    main(sys.argv[1])
