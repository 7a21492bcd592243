"""Types as keys are exact."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.storage.exact_type import Exact
from archiver.storage.parquet.leaves import leaves_and_paths
from schema_mapping.columns.arrow import FIELD_ID_KEY

PLAIN = (
    pa.int32(),
    pa.int64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.binary(16),
    pa.uuid(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ms", "UTC"),
    pa.decimal128(10, 2),
    pa.decimal128(10, 3),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.string(), ordered=True),
)


def _field(name: str, kind: pa.DataType, identifier: int | None, *, nullable: bool) -> pa.Field:
    metadata = None if identifier is None else {FIELD_ID_KEY: str(identifier)}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


FIELDS = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        st.lists(
            st.builds(
                _field,
                st.sampled_from(("a", "b")),
                inner,
                st.sampled_from((None, 1, 2)),
                nullable=st.booleans(),
            ),
            min_size=1,
            max_size=3,
        ).map(pa.struct),
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
    ),
    max_leaves=4,
)


def _told(kind: pa.DataType) -> object:
    below = _below(kind)
    parts = [(entry.name, entry.nullable, entry.metadata, _told(entry.type)) for entry in below]
    return (type(kind), "" if below else str(kind), getattr(kind, "keys_sorted", None), parts)


def _below(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(at) for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []


def _changed(kind: pa.DataType, draw: st.DataObject) -> pa.DataType:
    if not pa.types.is_nested(kind):
        return draw.draw(st.sampled_from(PLAIN))
    below = _below(kind)
    at = draw.draw(st.integers(0, len(below) - 1))
    match draw.draw(st.sampled_from(("name", "null", "id", "inside"))):
        case "name":
            below[at] = below[at].with_name(draw.draw(st.sampled_from(("a", "b", "item"))))
        case "null":
            below[at] = below[at].with_nullable(not below[at].nullable)
        case "id":
            below[at] = below[at].with_metadata({FIELD_ID_KEY: draw.draw(st.sampled_from("129"))})
        case _:
            below[at] = below[at].with_type(_changed(below[at].type, draw))
    match kind:
        case pa.MapType():
            key = below[0].with_nullable(False)  # noqa: FBT003 - Arrow's own signature
            return pa.map_(key, below[1], keys_sorted=draw.draw(st.booleans()))
        case pa.ListType():
            return pa.list_(below[0])
        case pa.LargeListType():
            return pa.large_list(below[0])
    return pa.struct(below)


@given(FIELDS, st.data())
def test_keys_are_equal_exactly_where_types_are(first: pa.DataType, draw: st.DataObject) -> None:
    second = _changed(first, draw)
    is_same = _told(first) == _told(second)
    assert (Exact.of_type(first) == Exact.of_type(second)) is is_same
    if is_same:
        assert hash(Exact.of_type(first)) == hash(Exact.of_type(second))


@pytest.mark.parametrize("other", [pa.field("a", pa.binary(16), metadata={"ARROW:extension:name": "arrow.uuid"})])
def test_what_looks_like_an_extension_type_when_written_is_none(other: pa.Field) -> None:
    assert Exact.of_type(pa.struct([pa.field("a", pa.uuid())])) != Exact.of_type(pa.struct([other]))


def test_leaves_are_shared_by_equal_columns_only() -> None:
    def schema(identifier: int) -> pa.Schema:
        return pa.schema([pa.field("a", pa.struct([_field("b", pa.int64(), identifier, nullable=True)]))])

    leaves, paths = leaves_and_paths(schema(7))
    assert leaves_and_paths(schema(7).with_metadata({"x": "y"}))[0] is leaves
    assert [leaf.field_id for leaf in leaves_and_paths(schema(8))[0]] == [8]
    assert dict(paths) == {7: ("a", "b")}
    with pytest.raises(TypeError):
        paths[8] = ()  # type: ignore[index]
