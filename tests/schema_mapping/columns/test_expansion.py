"""Messages with columns, and the end of expansion."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from schema_mapping import MappingOptions, MessageMapping, compile_mapping
from schema_mapping.columns.expansion import CutReason
from schema_mapping.errors import DescriptorError, MappingOptionsError
from tests.support.schemas.proto_text import descriptor_of


def mapped(text: str, **options: int) -> MessageMapping:
    return compile_mapping(descriptor_of(text), options=MappingOptions(**options))


def leaves(kind: pa.DataType) -> int:
    if pa.types.is_map(kind):
        return leaves(kind.key_type) + leaves(kind.item_type)
    if pa.types.is_list(kind):
        return leaves(kind.value_type)
    return sum(leaves(field.type) for field in kind) if pa.types.is_struct(kind) else 1


def cuts(mapping: MessageMapping) -> dict[str, CutReason]:
    return {cut.column: cut.reason for cut in mapping.cuts}


def test_recursion_is_cut_at_the_field_that_closes_it() -> None:
    mapping = mapped(
        "message M { int32 a = 1; N n = 2; } message N { M m = 1; repeated N ns = 2; map<int32, M> ms = 3; }"
    )
    n = mapping.arrow_type.field("n").type
    assert [field.name for field in n] == ["m", "ns", "ms", "__unrecognized__"]
    for cut in (n.field("m").type, n.field("ns").type.value_type, n.field("ms").type.item_type):
        assert [field.name for field in cut] == ["__unrecognized__"]
    assert cuts(mapping) == {
        "n.m": CutReason.RECURSION,
        "n.ns.element": CutReason.RECURSION,
        "n.ms.value": CutReason.RECURSION,
    }


def test_one_type_twice_on_different_paths_is_no_recursion() -> None:
    mapping = mapped("message M { A x = 1; A y = 2; B b = 3; } message A { int32 i = 1; } message B { A z = 1; }")
    assert mapping.cuts == ()
    assert mapping.arrow_type.field("b").type.field("z").type.field("i").type == pa.int32()


def test_depth_counts_messages() -> None:
    text = "".join(f"message L{n} {{ L{n + 1} next = 1; }}" for n in range(40)) + "message L40 {}"
    for depth in (1, 5, 24, 28):
        kind = compile_mapping(descriptor_of(text, "t.L0"), options=MappingOptions(max_depth=depth)).arrow_type
        seen = 0
        while "next" in (names := [field.name for field in kind]):
            kind, seen = kind.field("next").type, seen + 1
        assert names == ["__unrecognized__"]
        assert seen == depth


def test_maps_all_the_way_down_stay_within_arrows_c_interface() -> None:
    text = "".join(f"message L{n} {{ map<int32, L{n + 1}> next = 1; }}" for n in range(40)) + "message L40 {}"
    mapping = compile_mapping(descriptor_of(text, "t.L0"), options=MappingOptions(max_depth=28))
    schema = pa.schema([pa.field("val", mapping.arrow_type)])
    assert pa.Schema._import_from_c_capsule(schema.__arrow_c_schema__()) == schema
    assert [cut.reason for cut in mapping.cuts] == [CutReason.DEPTH]


def test_breadth_comes_first_then_field_number() -> None:
    text = """message M { A late = 9; A early = 2; }
              message A { int32 x = 1; int32 y = 2; B b = 3; } message B { int32 p = 1; int32 q = 2; }"""
    # 5 at the root and 2 messages; each A adds 3, each B adds 2.
    expected = {
        7: {"early", "late"},
        10: {"late", "early.b"},
        13: {"early.b", "late.b"},
        14: {"early.b", "late.b"},
        15: {"late.b"},
        17: set(),
    }
    for budget, cut in expected.items():
        mapping = mapped(text, max_columns=budget)
        assert set(cuts(mapping)) == cut, budget
        assert leaves(mapping.arrow_type) <= budget
        assert set(cuts(mapping).values()) <= {CutReason.COLUMNS}


def test_a_small_struct_fits_after_one_that_is_too_big() -> None:
    text = "message M { Big big = 1; Small small = 2; } message Small { int32 x = 1; } message Big { "
    text += " ".join(f"int32 f{n} = {n};" for n in range(1, 50)) + "}"
    assert set(cuts(mapped(text, max_columns=10))) == {"big"}


def test_a_doubling_graph_is_expanded_fast_and_within_budget() -> None:
    text = (
        "".join(f"message L{n} {{ L{n + 1} a = 1; L{n + 1} b = 2; }}" for n in range(30))
        + "message L30 { int32 x = 1; }"
    )
    descriptor = descriptor_of(text, "t.L0")
    start = time.perf_counter()
    mapping = compile_mapping(descriptor, options=MappingOptions(max_columns=2_000))
    assert time.perf_counter() - start < 2
    assert 1_990 <= leaves(mapping.arrow_type) <= 2_000


def test_six_hundred_fields() -> None:
    mapping = mapped("message M { " + " ".join(f"repeated int64 f{n} = {n};" for n in range(1, 601)) + "}")
    assert mapping.arrow_type.num_fields == 605
    assert mapping.cuts == ()


def test_own_fields_have_columns_despite_the_message_budget() -> None:
    text = (
        "message M { N n = 1000; "
        + " ".join(f"int32 f{n} = {n};" for n in range(1, 51))
        + "} message N { int32 x = 1; }"
    )
    mapping = mapped(text, max_columns=20)
    assert leaves(mapping.arrow_type) == 56
    assert set(cuts(mapping)) == {"n"}


def test_more_fields_than_any_table_takes() -> None:
    text = "message M { " + " ".join(f"int32 f{n} = {n};" for n in range(1, 10_001)) + "}"
    with pytest.raises(DescriptorError, match="10005 columns"):
        mapped(text)


def test_empty_messages() -> None:
    mapping = mapped("message M { E e = 1; repeated E es = 2; } message E {}")
    assert mapping.cuts == ()
    assert [field.name for field in mapping.arrow_type.field("e").type] == ["__unrecognized__"]
    assert mapping.root.fields[0].message is not None
    assert not mapping.root.fields[0].is_cut


@pytest.mark.parametrize("options", [{"max_depth": 0}, {"max_depth": 29}, {"max_columns": 0}, {"max_columns": 10_001}])
def test_limits_beyond_the_hard_ones_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(MappingOptionsError, match=next(iter(options))):
        MappingOptions(**options)
