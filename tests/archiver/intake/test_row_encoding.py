"""Which topics take rows of columns, and what reads the rows again."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.config import TopicConfig
from archiver.errors import BadLog
from archiver.intake.batches import RowsVersion, check_version
from archiver.intake.row_encoding import RowEncoding
from schema_mapping import DeclaredSchema, LedgerState, assign
from schema_mapping.row import row_mapping_from_text
from tests.support.intake.encodings import avro, json_schema
from tests.support.schemas.proto_text import compile_text

FILES = {"format": "avro", "schema": "r.avsc"}
COERCED = {"format": "protobuf", "message": "t.M", "wire_format": "confluent", "coerce": True}


@pytest.mark.parametrize(
    ("part", "section", "is_refused"),
    [
        ("value", FILES, False),
        ("value", COERCED, False),
        ("value", {**COERCED, "coerce": False}, True),
        ("value", {"format": "json", "wire_format": "confluent"}, True),
        ("value", {"format": "avro", "wire_format": "single_object"}, True),
        ("value", {**FILES, "wire_format": "single_object"}, True),
        ("key", {**FILES, "wire_format": "single_object"}, True),
    ],
)
def test_encoded_values_must_be_whole_values(part: str, section: dict[str, Any], is_refused: bool) -> None:
    topic = TopicConfig.model_validate({"name": "t", "table": "lake.t", "value": FILES, part: section})
    refusal = RowEncoding.of(topic, assign(LedgerState(), value=avro(device="string")).row).refusal
    assert (refusal is not None) is is_refused


@pytest.mark.parametrize(
    "schema",
    [avro(id="long"), json_schema(id={"type": "integer"}), compile_text("message M { int64 id = 1; }")],
    ids=["avro", "json", "protobuf"],
)
def test_a_stored_mapping_is_the_one_that_encoded(schema: DeclaredSchema) -> None:
    row = assign(LedgerState(), key=schema, value=schema).row
    version = RowsVersion.of(row)
    assert RowsVersion.of(row_mapping_from_text(row.text)) == version
    check_version(version, row_mapping_from_text(row.text), topic="t")
    check_version(version._replace(fingerprint=None), row, topic="t")


def test_another_schema_of_the_same_number_is_refused() -> None:
    """The registry was restored from a state before the version."""
    before = assign(LedgerState(), value=avro(id="long")).state
    used, later = (
        assign(before, value=avro(id="long", **dict.fromkeys(order, "double"))).row
        for order in (("low", "high"), ("high", "low"))
    )
    assert used.schema_version == later.schema_version
    with pytest.raises(BadLog, match="rows wait in the log that another schema encoded"):
        check_version(RowsVersion.of(used), later, topic="t")
