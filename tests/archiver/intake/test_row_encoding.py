"""Which topics take rows of columns."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.config import TopicConfig
from archiver.intake.row_encoding import RowEncoding
from schema_mapping import LedgerState, assign
from tests.support.intake.encodings import avro

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
