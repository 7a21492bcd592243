"""Apache's Java library judges the Avro kernel."""

from __future__ import annotations

import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import pytest

from archiver.local.java import find_java
from tests.fuzz.avro_target import FAMILY
from tests.support.schemas.strategies_avro import mapping_of, written

pytestmark = pytest.mark.interop

SOURCE: Final = Path(__file__).parents[1] / "java" / "AvroJudge.java"
JARS: Final = Path(pyspark.__file__).parent / "jars"
WITHOUT: Final = ("Nothing",)
"""Java has no limit of items without bytes."""
VALUES: Final = 2_000


def rewritten(cases: list[tuple[Any, list[bytes]]]) -> list[list[bytes | None]]:
    given = [struct.pack(">i", len(cases))]
    for schema, values in cases:
        parts = [json.dumps(schema).encode(), *values]
        framed = [struct.pack(">i", len(part)) + part for part in parts]
        given += [framed[0], struct.pack(">i", len(values)), *framed[1:]]
    command = [find_java().executable, "-Xmx512m", "-cp", f"{JARS}/*", str(SOURCE)]
    output = subprocess.run(command, input=b"".join(given), stdout=subprocess.PIPE, check=True, timeout=300).stdout
    at = 0
    answers: list[list[bytes | None]] = []
    for _, values in cases:
        answers.append([])
        for _ in values:
            (size,) = struct.unpack_from(">i", output, at)
            answers[-1].append(None if size < 0 else output[at + 4 : at + 4 + size])
            at += 4 + max(0, size)
    assert at == len(output)
    return answers


def changed(choices: random.Random, value: bytes) -> bytes:
    octets = bytearray(value)
    for _ in range(choices.randrange(4)):
        at = choices.randrange(len(octets) + 1)
        match choices.randrange(3):
            case 0 if at < len(octets):
                octets[at] = choices.choice([0, 1, 2, 127, 128, 255, choices.randrange(256)])
            case 1:
                octets[at:at] = bytes([choices.randrange(256)])
            case _:
                del octets[at : at + 1]
    return bytes(octets)


def test_java_reads_and_writes_as_the_kernel() -> None:
    choices = random.Random(42)
    family = [(schema, written(schema, value)) for schema, value in FAMILY if schema["name"] not in WITHOUT]
    cases = [(schema, [good, *(changed(choices, good) for _ in range(VALUES))]) for schema, good in family]
    for (schema, values), answers in zip(cases, rewritten(cases), strict=True):
        mapping = mapping_of(schema)
        rows = mapping.decode(pa.array(values))
        assert mapping.encode(rows).to_pylist() == values
        for value, answer, row in zip(values, answers, rows.to_pylist(), strict=True):
            assert (answer is None) == (row["__err__"] is not None), (schema["name"], value.hex(), row["__err__"])
            is_text = "\ufffd" not in str(row)  # Java keeps bytes that aren't UTF-8
            if answer == value and is_text and "logicalType" not in json.dumps(schema):
                assert row["__raw__"] is None, (schema["name"], value.hex())
            is_typed = row["__raw__"] is None and row["__form__"] is None
            if is_typed and "map" not in json.dumps(schema) and schema["name"] != "Node":
                assert answer == value, (schema["name"], value.hex())
