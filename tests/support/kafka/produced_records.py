"""Records as producers hand them over, for random tests."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.kafka.record_batches import Record

TIMES = st.integers(-(1 << 61), (1 << 61) - 1)
BYTES = st.none() | st.binary(max_size=300)
RECORDS = st.builds(
    Record,
    timestamp=TIMES,
    key=BYTES,
    value=BYTES,
    headers=st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=4).map(tuple),
)
