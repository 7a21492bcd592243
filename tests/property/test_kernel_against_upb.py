"""Any schema, any bytes: upb and the kernel agree, and every byte comes back."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.kernel_check import check_upb_is_canonical, check_values
from tests.property.strategies_protobuf import many_payloads, payloads, schemas

MANY = settings(max_examples=4 * settings().max_examples)


@MANY
@given(st.data(), schemas(), st.sampled_from((24, 1, 2, 3)))
def test_one_value(data: st.DataObject, schema: Descriptor, max_depth: int) -> None:
    check_values(schema, [data.draw(payloads(schema))], max_depth=max_depth)


@MANY
@given(st.data(), schemas(), st.sampled_from((24, 1, 2, 3)))
def test_a_batch(data: st.DataObject, schema: Descriptor, max_depth: int) -> None:
    values = data.draw(many_payloads(schema))
    check_values(schema, values, max_depth=max_depth)
    check_upb_is_canonical(schema, values, max_depth=max_depth)
