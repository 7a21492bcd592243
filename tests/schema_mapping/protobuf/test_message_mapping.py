"""Mappings as values, and raw mappings as codec."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from schema_mapping import ColumnIds, MappingOptions, RawMapping, compile_mapping
from schema_mapping.errors import DescriptorError
from schema_mapping.formats import mapping_from_json
from tests.support.schemas.proto_text import descriptor_of

TEXT = (
    "message M { int32 a = 1; repeated N n = 2; map<string, M> m = 3; } message N { int32 x = 1; oneof o { M m = 2; } }"
)


def test_equal_mappings_are_equal() -> None:
    first, second = compile_mapping(descriptor_of(TEXT)), compile_mapping(descriptor_of(TEXT))
    assert first == second
    assert hash(first) == hash(second)
    assert first.root == second.root
    assert len({first, second}) == 1


def test_what_makes_mappings_differ() -> None:
    descriptor = descriptor_of(TEXT)
    first = compile_mapping(descriptor)
    assert first != compile_mapping(descriptor, keep_raw=True)
    assert first != compile_mapping(descriptor, options=MappingOptions(max_depth=3))
    assert first != compile_mapping(descriptor_of(TEXT, "t.N"))
    assert first.fingerprint == compile_mapping(descriptor, keep_raw=True).fingerprint
    assert first != "something else"


def test_pickling() -> None:
    first = compile_mapping(descriptor_of(TEXT), keep_raw=True)
    again = pickle.loads(pickle.dumps(first))
    assert again == first
    assert (again.root, again.root_ids, again.cuts) == (first.root, first.root_ids, first.cuts)
    assert again.arrow_type.equals(first.arrow_type, check_metadata=True)
    assert pickle.loads(pickle.dumps(first)) is again


def test_pickling_into_another_process() -> None:
    first = compile_mapping(descriptor_of(TEXT))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).fingerprint)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(first), capture_output=True, check=True)
    assert done.stdout.decode().strip() == first.fingerprint


def test_json() -> None:
    first = compile_mapping(descriptor_of(TEXT), options=MappingOptions(max_depth=2))
    again = mapping_from_json(first.to_json())
    assert again == first
    assert again.to_json() == first.to_json()


def test_ids_given_are_the_ids_used() -> None:
    descriptor = descriptor_of("message M { int32 a = 1; N n = 2; } message N { int32 x = 1; }")
    first = compile_mapping(descriptor)
    moved = ColumnIds.from_json(
        [[path, field_id + 500, f"{name}_x", *cut] for path, field_id, name, *cut in first.ids.to_json()]
    )
    second = compile_mapping(descriptor, ids=moved)
    assert second.arrow_type.field("n_x").type.field("x_x").metadata[b"PARQUET:field_id"] == b"503"
    assert second.root.fields[0].source_name == "a"


def test_a_field_without_a_column_is_left_out() -> None:
    descriptor = descriptor_of("message M { int32 a = 1; int32 b = 2; }")
    ids = compile_mapping(descriptor).ids
    fewer = ColumnIds(columns=tuple(column for column in ids.columns if column.path != (2,)))
    assert [field.name for field in compile_mapping(descriptor, ids=fewer).root.fields] == ["a"]


def test_ids_of_another_message_are_refused() -> None:
    ids = compile_mapping(descriptor_of("message M { int32 a = 1; }")).ids
    with pytest.raises(DescriptorError, match="lack a column"):
        compile_mapping(descriptor_of("message M { repeated int32 a = 1; }"), ids=ids)
    with pytest.raises(DescriptorError, match="lack a column"):
        compile_mapping(descriptor_of("message M {}"), ids=ColumnIds(columns=()))


RAW_VALUES = [b"", None, b"\x00\xff", b"x" * 1000]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(RAW_VALUES, pa.binary()),
        pa.array(RAW_VALUES, pa.large_binary()),
        pa.array([b"skipped", *RAW_VALUES], pa.binary())[1:],
        pa.chunked_array([RAW_VALUES[:1], [], RAW_VALUES[1:]], pa.binary()),
        pa.chunked_array([], pa.binary()),
    ],
    ids=["binary", "large", "sliced", "chunked", "no chunks"],
)
def test_raw_there_and_back(values: pa.Array) -> None:
    mapping = RawMapping(raw_id=100)
    rows = mapping.decode(values)
    assert rows.type.equals(mapping.arrow_type, check_metadata=True)
    assert rows.null_count == values.null_count
    assert rows.to_pylist() == [None if value is None else {"__raw__": value} for value in values.to_pylist()]
    back = mapping.encode(rows)
    assert back.type == pa.binary()
    assert back.to_pylist() == values.to_pylist()


def test_raw_mapping_is_a_value() -> None:
    mapping = RawMapping(raw_id=100)
    assert pickle.loads(pickle.dumps(mapping)) == mapping == mapping_from_json(mapping.to_json())
    assert str(mapping.iceberg_type) == "struct<100: __raw__: optional binary>"
