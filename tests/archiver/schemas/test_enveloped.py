"""Values in envelopes as rows: columns where they can be read, `__err__` where not, and every byte back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor

from archiver.schemas.envelope import EnvelopeReader
from archiver.schemas.enveloped import decode_enveloped
from archiver.schemas.registered import Indexes
from schema_mapping import compile_mapping
from tests.schema_mapping.proto_text import descriptor_of

NEW = descriptor_of("message M { int32 a = 1; repeated string b = 2; M c = 3; }")
OLD = descriptor_of("message M { int32 a = 1; repeated string b = 2; M c = 3; bytes extra = 9; }")
MAPPING = compile_mapping(NEW)
FIRST, SECOND, UNKNOWN, OTHER = (b"\0\0\0\0" + bytes([at]) + b"\0" for at in (1, 2, 3, 4))


class Ids:
    def messages(self, schema_id: int, indexes: Indexes) -> frozenset[str] | None:
        return {1: frozenset({"t.M"}), 2: frozenset({"t.M"}), 4: frozenset({"t.N"})}.get(schema_id)


def decode(values: list[bytes | None], kind: pa.DataType) -> pa.StructArray:
    column = pa.array([b"no", *values], kind).slice(1)
    rows = decode_enveloped(MAPPING, column, EnvelopeReader(message="t.M", ids=Ids()))
    rows.validate(full=True)
    assert rows.type == MAPPING.arrow_type
    assert MAPPING.encode(rows).to_pylist() == values
    return rows


def message(descriptor: Descriptor, **fields: object) -> bytes:
    return message_factory.GetMessageClass(descriptor)(**fields).SerializeToString()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_every_fate(kind: pa.DataType) -> None:
    rows = decode(
        [
            FIRST + message(NEW, a=5, b=["x", "y"]),
            SECOND + message(OLD, a=6, extra=b"more"),
            UNKNOWN + message(NEW, a=7),
            OTHER + message(NEW, a=8),
            message(NEW, a=9),
            None,
            FIRST,
            FIRST + b"\x08",
        ],
        kind,
    ).to_pylist()
    assert [row and row["a"] for row in rows] == [5, 6, None, None, None, None, 0, None]
    assert [row and row["__prefix__"] for row in rows] == [FIRST, SECOND, None, None, None, None, FIRST, None]
    assert [row and row["__err__"] for row in rows] == [
        *(None, None, "unknown_schema_id@1", "other_message@5", "bad_envelope@0", None, None),
        "truncated@7",
    ]
    assert [row is None or row["__raw__"] is None for row in rows] == [
        True,
        True,
        False,
        False,
        False,
        True,
        True,
        False,
    ]
    assert rows[1]["__unrecognized__"] is not None
    assert {name for name, cell in rows[2].items() if cell is not None} == {"__raw__", "__err__"}


def test_all_refused() -> None:
    assert decode([b"", b"x", UNKNOWN], pa.binary()).field("__err__").to_pylist() == [
        *("bad_envelope@0", "bad_envelope@0", "unknown_schema_id@1")
    ]
