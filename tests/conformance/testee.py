"""The program that Google's conformance runner tests: the kernel answers.

A payload with `__err__` is a parse error. Any other must come back bit for bit; the runner, which wants the canonical
form, gets an answer from the columns alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass

from tests.conformance.canonical import canonical, mapping_of
from tests.conformance.suite import descriptor

Request = GetMessageClass(descriptor("conformance.ConformanceRequest"))
Response = GetMessageClass(descriptor("conformance.ConformanceResponse"))
PROTOBUF = 1
LENGTH_BYTES = 4


def respond(request: Any) -> Any:
    if request.message_type == "conformance.FailureSet":
        return Response(protobuf_payload=b"")
    if request.WhichOneof("payload") != "protobuf_payload" or request.requested_output_format != PROTOBUF:
        return Response(skipped="only the binary format is read and written")
    payload: bytes = request.protobuf_payload
    mapping = mapping_of(request.message_type)
    rows = mapping.decode(pa.array([payload], pa.binary()))
    (replayed,) = mapping.encode(rows).to_pylist()
    if replayed != payload:
        return Response(runtime_error=f"replayed as {replayed!r}")
    err = rows.field("__err__")[0].as_py()
    if err is not None:
        return Response(parse_error=err)
    return Response(protobuf_payload=canonical(request.message_type, payload))


def main(record_to: str | None = None) -> None:
    """Answer until the pipe closes. Binary payloads are appended to the file `record_to`."""
    record = Path(record_to).open("ab", buffering=0) if record_to else None  # noqa: SIM115 - as long as the process
    while head := sys.stdin.buffer.read(LENGTH_BYTES):
        request = Request.FromString(sys.stdin.buffer.read(int.from_bytes(head, "little")))
        if record is not None and request.WhichOneof("payload") == "protobuf_payload":
            record.write(f"{request.message_type} {request.protobuf_payload.hex()}\n".encode())
        answer = respond(request).SerializeToString()
        sys.stdout.buffer.write(len(answer).to_bytes(LENGTH_BYTES, "little") + answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
