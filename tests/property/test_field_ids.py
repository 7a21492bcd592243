"""Field ids in random histories of schemas."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema, promote
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from schema_mapping import Assignment, LedgerState, MappingOptions, SourceSchema, assign
from schema_mapping.columns.arrow import field_id_of
from schema_mapping.columns.ledger import ASKS
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.protobuf.column_options import COLUMN_NUMBER
from schema_mapping.row import RowMapping, row_mapping_from_json, row_mapping_from_text
from tests.support.schemas.column_choices import EXCLUDE
from tests.support.schemas.protobuf_bytes import delimited

MESSAGES = ("M", "A", "B")
NAMES = ("a", "A", "b", "B", "a_2", "a_deleted_101", "__raw__", "__Unrecognized__")
LABELS = ("LABEL_OPTIONAL", "LABEL_REPEATED")
SCALARS = tuple(
    kind for kind, _ in FieldDescriptorProto.Type.items() if kind not in ("TYPE_MESSAGE", "TYPE_GROUP", "TYPE_ENUM")
)
MAP_KEYS = ("TYPE_STRING", "TYPE_INT32", "TYPE_UINT32", "TYPE_SINT64", "TYPE_BOOL")
ENUM = EnumDescriptorProto(name="E", value=[{"name": "ZERO", "number": 0}])  # type: ignore[list-item]

WELL_KNOWN = {
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.protobuf.Struct": "google/protobuf/struct.proto",
    "google.protobuf.UInt64Value": "google/protobuf/wrappers.proto",
}

types = st.sampled_from(SCALARS + MESSAGES + ("E", *WELL_KNOWN))


def typed(field: FieldDescriptorProto, kind: str) -> FieldDescriptorProto:
    if kind in MESSAGES:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".t.{kind}"
    elif kind in WELL_KNOWN:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{kind}"
    elif kind == "E":
        field.type, field.type_name = FieldDescriptorProto.TYPE_ENUM, ".t.E"
    else:
        field.type = FieldDescriptorProto.Type.Value(kind)
    return field


@st.composite
def messages(draw: st.DrawFn, name: str) -> DescriptorProto:
    message = DescriptorProto(name=name)
    numbers = draw(st.lists(st.integers(1, 6), unique=True, max_size=5))
    names = draw(st.permutations(NAMES))
    for number, field_name in zip(numbers, names, strict=False):
        field = message.field.add(name=field_name, number=number, label="LABEL_OPTIONAL")
        if draw(st.integers(0, 4)) == 0:
            entry = message.nested_type.add(name=f"Map{number}Entry")
            entry.options.map_entry = True
            typed(entry.field.add(name="key", number=1, label="LABEL_OPTIONAL"), draw(st.sampled_from(MAP_KEYS)))
            typed(entry.field.add(name="value", number=2, label="LABEL_OPTIONAL"), draw(types))
            field.label = FieldDescriptorProto.LABEL_REPEATED
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".t.{name}.{entry.name}"
            field.name = f"map{number}"
            entry.name = f"Map{number}Entry"
            continue
        field.label = FieldDescriptorProto.Label.Value(draw(st.sampled_from(LABELS)))
        typed(field, draw(types))
    into_oneofs(draw, message)
    for field in message.field:
        if draw(st.integers(0, 5)) == 0:
            field.options.MergeFromString(delimited(COLUMN_NUMBER, EXCLUDE))
    return message


def into_oneofs(draw: st.DrawFn, message: DescriptorProto) -> None:
    members: dict[str, list[FieldDescriptorProto]] = {"p": [], "q": []}
    for field in message.field:
        choice = draw(st.sampled_from(("", "", "p", "q")))
        if choice and field.label == FieldDescriptorProto.LABEL_OPTIONAL:
            members[choice].append(field)
    for name, fields in members.items():
        for field in fields:
            field.oneof_index = len(message.oneof_decl)
        if fields:
            message.oneof_decl.add(name=f"oneof_{name}")


@st.composite
def schemas(draw: st.DrawFn) -> FileDescriptorProto:
    file = FileDescriptorProto(name="t.proto", package="t", syntax="proto2", enum_type=[ENUM])
    file.dependency.extend(WELL_KNOWN.values())
    file.message_type.extend(draw(messages(name)) for name in MESSAGES)
    return file


def source(file: FileDescriptorProto) -> SourceSchema:
    return SourceSchema(descriptor_set=FileDescriptorSet(file=[file]).SerializeToString(), message="t.M")


options = st.builds(
    MappingOptions,
    max_depth=st.integers(1, 5),
    max_columns=st.integers(30, 120),
    well_known_types=st.sampled_from(("struct", "timestamp", "native")),
    uint64=st.sampled_from(("long", "decimal")),
)
keeping = st.builds(lambda choice, keep: replace(choice, keep_removed=keep), options, st.booleans())
histories = st.lists(st.tuples(schemas(), options), min_size=1, max_size=5)
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def run(history: list[tuple[FileDescriptorProto, MappingOptions]]) -> list[Assignment]:
    state, result = LedgerState(), []
    for file, limits in history:
        result.append(assign(state, key=source(file), value=source(file), options=limits))
        state = result[-1].state
    return result


def columns(kind: IcebergType, parent: int = 0) -> dict[int, tuple[int, NestedField]]:
    match kind:
        case StructType():
            inner = list(kind.fields)
            names = [field.name.lower() for field in inner]
            assert len(set(names)) == len(names), "names must differ by more than case"
        case ListType():
            inner = [kind.element_field]
        case MapType():
            inner = [kind.key_field, kind.value_field]
        case _:
            inner = []
    result: dict[int, tuple[int, NestedField]] = {}
    for field in inner:
        below = columns(field.field_type, field.field_id)
        assert field.field_id not in result
        assert not set(below) & set(result), "ids must be unique"
        result |= {field.field_id: (parent, field), **below}
    return result


@quick
@given(histories)
def test_a_table_only_ever_evolves_as_iceberg_allows(history: list[tuple[FileDescriptorProto, MappingOptions]]) -> None:
    before: dict[int, tuple[int, NestedField]] = {}
    for assigned in run(history):
        after = columns(assigned.iceberg_schema.as_struct())
        for field_id, (parent, field) in before.items():
            assert field_id in after, "columns stay"
            assert after[field_id][0] == parent, "columns stay where they are"
            now = after[field_id][1]
            assert now.required == field.required
            if field.field_type.is_primitive and now.field_type != field.field_type:
                assert promote(field.field_type, now.field_type) == now.field_type
                assert not field.name.startswith("key"), "map keys never promote"
            else:
                assert type(now.field_type) is type(field.field_type)
        assert max(after) <= assigned.state.last_id
        before = after


@quick
@given(histories)
def test_rows_fit_the_table(history: list[tuple[FileDescriptorProto, MappingOptions]]) -> None:
    for assigned in run(history):
        table = columns(assigned.iceberg_schema.as_struct())
        assert_fits(assigned.row.arrow_schema, table, newest=assigned.version == assigned.state.versions[-1].version)


def assert_fits(schema: pa.Schema, table: dict[int, tuple[int, NestedField]], *, newest: bool) -> None:
    def check(field: pa.Field, parent: int) -> None:
        assert field_id_of(field) in table
        above, column = table[field_id_of(field)]
        assert above == parent
        if newest:
            assert column.name == field.name
        kind = field.type
        if pa.types.is_map(kind):
            inner = [kind.key_field, kind.item_field]
        elif pa.types.is_list(kind):
            inner = [kind.value_field]
        else:
            inner = list(kind) if pa.types.is_struct(kind) else []
        for value in inner:
            check(value, field_id_of(field))

    for field in schema:
        check(field, 0)


@quick
@given(histories, st.randoms(use_true_random=False))
def test_order_in_the_source_does_not_matter(
    history: list[tuple[FileDescriptorProto, MappingOptions]], shuffler: random.Random
) -> None:
    shuffled = []
    for file, limits in history:
        clone = FileDescriptorProto()
        clone.CopyFrom(file)
        for message in clone.message_type:
            mixed = list(message.field)
            shuffler.shuffle(mixed)
            del message.field[:]
            message.field.extend(mixed)
        mixed_messages = list(clone.message_type)
        shuffler.shuffle(mixed_messages)
        del clone.message_type[:]
        clone.message_type.extend(mixed_messages)
        shuffled.append((clone, limits))
    first, second = run(history)[-1], run(shuffled)[-1]
    assert first.state.entries == second.state.entries
    assert first.changes == second.changes
    assert first.row == second.row
    assert first.iceberg_schema == second.iceberg_schema


@quick
@given(histories)
def test_old_versions_stay_as_they_were(history: list[tuple[FileDescriptorProto, MappingOptions]]) -> None:
    versions = run(history)
    last = versions[-1].state
    for (file, limits), assigned in zip(history, versions, strict=True):
        stored = next(version for version in last.versions if version.version == assigned.version)
        assert row_mapping_from_json(json.loads(stored.mapping)) == assigned.row
        again = assign(last, key=source(file), value=source(file), options=limits)
        assert again.state == last
        assert again.row == assigned.row
        assert again.changes == ()
        assert again.iceberg_schema == versions[-1].iceberg_schema


@quick
@given(histories)
def test_the_ledger_is_a_tree_with_unique_keys(history: list[tuple[FileDescriptorProto, MappingOptions]]) -> None:
    state = run(history)[-1].state
    by_id = {entry.field_id: entry for entry in state.entries}
    assert (
        len(by_id) == len({(entry.root, entry.path, entry.generation) for entry in state.entries}) == len(state.entries)
    )
    for entry in state.entries:
        if len(entry.path) > 1:
            parent = by_id[entry.parent_id]
            assert (parent.root, parent.path) == (entry.root, entry.path[:-1])
            assert parent.state == "live" or entry.state == "deleted"
    assert Schema(*run(history)[-1].iceberg_schema.fields)


HOURS = (0.01, 0.6, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    which: int
    times: int
    hours: float

    @property
    def lasts(self) -> bool:
        return self.times > ASKS and (self.times - 2) * self.hours >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    made: list[tuple[FileDescriptorProto, MappingOptions]]
    moved: list[int]
    asked: list[Asked]


@st.composite
def moved_oneofs(draw: st.DrawFn, file: FileDescriptorProto) -> FileDescriptorProto:
    moved = FileDescriptorProto.FromString(file.SerializeToString())
    for message in moved.message_type:
        del message.oneof_decl[:]
        for field in message.field:
            field.ClearField("oneof_index")
        into_oneofs(draw, message)
    return moved


@st.composite
def returns(draw: st.DrawFn) -> Returns:
    made, moved = [(draw(schemas()), draw(keeping))], []
    for which in range(1, draw(st.integers(2, 3))):
        file, limits = made[-1]
        match draw(st.sampled_from(("schema", "oneofs", "options"))):
            case "schema":
                made.append((draw(schemas()), limits))
            case "oneofs":
                made.append((draw(moved_oneofs(file)), limits))
                moved.append(which)
            case _:
                made.append((file, draw(keeping)))
    again = st.builds(Asked, which=st.integers(0, len(made) - 1), times=st.integers(1, 5), hours=st.sampled_from(HOURS))
    first = [Asked(which=which, times=1, hours=0.01) for which in (*range(len(made)), 0)]
    return Returns(made=made, moved=moved, asked=[*first, *draw(st.lists(again, max_size=4))])


@quick
@given(returns())
def test_returning_schemas_have_columns_at_once_names_later(history: Returns) -> None:
    state, now = LedgerState(), datetime(2026, 1, 1, tzinfo=UTC)
    rows: dict[int, RowMapping] = {}
    for position, item in enumerate(history.asked):
        file, limits = history.made[item.which]
        for _ in range(item.times):
            before, now = state, now + timedelta(hours=item.hours)
            result = assign(before, key=source(file), value=source(file), options=limits, now=now)
            state = result.state
            table = columns(result.iceberg_schema.as_struct())
            assert_fits(result.row.arrow_schema, table, newest=result.version > len(before.versions))
            assert rows.setdefault(result.version, result.row) == result.row, "a version stays what it was"
            if len(state.versions) == len(before.versions):
                assert (result.changes, state.entries) == ((), before.entries), "nothing flaps"
        if item.which in history.moved and position == item.which:
            assert result.changes == (), "a move into a oneof, or out of one, changes no column"
        live = {entry.field_id for entry in state.entries if entry.state == "live"}
        if result.version == state.versions[-1].version:
            assert result.row.column_ids == live
        elif item.lasts:
            assert result.row.column_ids <= live, "what has come to stay has the plain names"
    again = rebuild_ledger(row_mapping_from_text(version.mapping) for version in state.versions)
    assert again.versions == state.versions
    assert [(entry.field_id, entry.type, entry.state) for entry in again.entries] == [
        (entry.field_id, entry.type, entry.state) for entry in state.entries
    ]
