"""Excluded fields and extensions against upb."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schema_mapping import MappingOptions, compile_mapping
from tests.support.schemas.column_choices import excluding, with_extensions
from tests.support.schemas.kernel_check import check_upb_is_canonical, check_values
from tests.support.schemas.random_choices import DrawnChoices, SeededChoices
from tests.support.schemas.random_payloads import random_payload
from tests.support.schemas.random_schemas import random_schema

SEEDS = st.integers(0, 2**32 - 1)
OPTIONS = st.builds(
    MappingOptions,
    max_depth=st.sampled_from((24, 2, 3)),
    well_known_types=st.sampled_from(("struct", "timestamp", "native")),
)


@given(st.data(), SEEDS, OPTIONS, st.booleans())
def test_excluded_fields_are_unknown_ones_in_their_places(
    data: st.DataObject, seed: int, options: MappingOptions, displaced: bool
) -> None:
    choices = DrawnChoices(data.draw)
    schema = excluding(choices, random_schema(choices), displaced=displaced)
    mapping = compile_mapping(schema.marked, options=options)
    choices = SeededChoices(seed)
    values = [random_payload(choices, schema.whole) for _ in range(40)]
    check_values(schema.rest, values, mapping=mapping)
    if not displaced:
        check_upb_is_canonical(schema.whole, values, mapping=mapping)


@given(st.data(), SEEDS, OPTIONS)
def test_extensions_are_fields(data: st.DataObject, seed: int, options: MappingOptions) -> None:
    plain = random_schema(DrawnChoices(data.draw))
    schema, names = with_extensions(DrawnChoices(data.draw), plain)
    reached = compile_mapping(schema).graph.types
    pool = schema.file.pool
    named = [name for name in names if pool.FindExtensionByName(name).containing_type.full_name in reached]
    mapping = compile_mapping(schema, extensions=named, options=options)
    choices = SeededChoices(seed)
    values = [random_payload(choices, plain) for _ in range(40)]
    check_values(schema, values, mapping=mapping)
