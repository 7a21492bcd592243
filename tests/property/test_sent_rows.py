"""Any schema, any rows: values are the bytes that fastavro, Google's library and `json` write."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from archiver.intake.row_encoding import RowEncoding
from schema_mapping import compile_mapping
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ValueMapping
from tests.support.intake.encodings import RAW, values_of
from tests.support.schemas import strategies_avro, strategies_json
from tests.support.schemas.random_messages import random_message
from tests.support.schemas.real_schemas import PACKAGES, messages
from tests.support.schemas.sent_columns import has_added, sent_batch, sent_type

SAMPLE = 12
VALUES = 20


def encoding(mapping: ValueMapping) -> RowEncoding:
    return RowEncoding(row=RowMapping(key=RAW.row.key, value=mapping, schema_version=1))


@given(strategies_avro.cases(), st.data())
def test_avro_is_what_fastavro_writes(case: strategies_avro.Case, data: st.DataObject) -> None:
    assume(case.schema["fields"])
    mapping = strategies_avro.mapping_of(case.schema)
    rows = data.draw(st.lists(case.values, min_size=1, max_size=5))
    shown: list[Any] = [strategies_avro.shown(case.schema, row) for row in rows]
    batch = pa.RecordBatch.from_struct_array(pa.array(shown, sent_type(mapping.arrow_type)))
    expected = [strategies_avro.written(case.schema, row) for row in rows]
    assert values_of(batch, encoding(mapping), name="rows") == expected


@given(strategies_json.cases(), st.data())
def test_compact_json_comes_back(case: strategies_json.Case, data: st.DataObject) -> None:
    mapping = strategies_json.json_mapping(case.schema)
    written = [
        json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        for value in data.draw(st.lists(case.values, min_size=1, max_size=8))
    ]
    kept = [value for value in written if not has_added(mapping.decode(pa.array([value], pa.binary())).to_pylist()[0])]
    assume(kept)
    batch = sent_batch(mapping.decode(pa.array(kept, pa.binary())))
    assume(batch.num_columns)
    assert values_of(batch, encoding(mapping), name="rows") == kept


@pytest.mark.parametrize("package", PACKAGES)
def test_protobuf_is_what_google_writes(package: str) -> None:
    declared = messages(package)
    for name in list(declared)[:: max(1, len(declared) // SAMPLE)]:
        mapping = compile_mapping(declared[name])
        made = [random_message(seed, declared[name]) for seed in range(VALUES)]
        written = [message.SerializeToString() for message in made if message.IsInitialized()]
        kept = [
            value for value in written if not has_added(mapping.decode(pa.array([value], pa.binary())).to_pylist()[0])
        ]
        batch = sent_batch(mapping.decode(pa.array(kept, pa.binary())))
        if kept and batch.num_columns:
            assert values_of(batch, encoding(mapping), name="rows") == kept
