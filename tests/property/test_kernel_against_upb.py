"""Any schema and bytes against upb."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from schema_mapping import MappingOptions
from tests.support.schemas.kernel_check import check_upb_is_canonical, check_values
from tests.support.schemas.strategies_protobuf import many_payloads, payloads, schemas

MANY = settings(max_examples=4 * settings().max_examples)
OPTIONS = st.builds(
    MappingOptions,
    max_depth=st.sampled_from((24, 1, 2, 3)),
    well_known_types=st.sampled_from(("struct", "timestamp", "native")),
    uint64=st.sampled_from(("long", "decimal")),
)


@MANY
@given(st.data(), schemas(), OPTIONS)
def test_one_value(data: st.DataObject, schema: Descriptor, options: MappingOptions) -> None:
    check_values(schema, [data.draw(payloads(schema))], options=options)


@MANY
@given(st.data(), schemas(), OPTIONS)
def test_a_batch(data: st.DataObject, schema: Descriptor, options: MappingOptions) -> None:
    values = data.draw(many_payloads(schema))
    check_values(schema, values, options=options)
    check_upb_is_canonical(schema, values, options=options)
