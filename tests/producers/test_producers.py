"""Values of other languages' serializers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schema_mapping import compile_mapping
from schema_mapping.protobuf.oneofs_last import ONEOFS_LAST
from tests.producers.content import COUNTS, content, descriptor, read_vector
from tests.producers.interop import PRODUCERS, kept_raw
from tests.support.schemas.kernel_check import check_values
from tests.support.schemas.upb_judge import parse

NO_GROUPS = {name: count for name, count in COUNTS.items() if name != "producers.Claim"}
WRITES = {
    "go": COUNTS,
    "java": COUNTS,
    "prost": NO_GROUPS,
    "protobuf-es": COUNTS,
    "protobufjs": NO_GROUPS,
    "protobufjs-defaults": NO_GROUPS,
}
PROST = {"producers.Order": 33, "producers.OldOrder": 4, "producers.Scattered": 16}
FORMS = {"producers.Order": 45, "producers.Claim": 42, "producers.Scattered": 26}


def test_every_vector_is_here() -> None:
    assert WRITES.keys() == PRODUCERS.keys()
    for producer, counts in WRITES.items():
        assert {message: len(values) for message, values in read_vector(producer).items()} == counts


@pytest.mark.parametrize("producer", WRITES)
def test_the_share_kept_raw(producer: str) -> None:
    raw = {message: kept_raw(message, values) for message, values in read_vector(producer).items()}
    assert {message: count for message, count in raw.items() if count} == (PROST if producer == "prost" else {})


@pytest.mark.parametrize("producer", WRITES)
def test_only_go_writes_oneofs_last(producer: str) -> None:
    forms = {message: _forms(message, values) for message, values in read_vector(producer).items()}
    assert {message: count for message, count in forms.items() if count} == (FORMS if producer == "go" else {})


def _forms(message: str, values: list[bytes]) -> int:
    forms = compile_mapping(descriptor(message)).decode(pa.array(values, pa.binary())).field("__form__")
    assert set(forms.to_pylist()) <= {None, ONEOFS_LAST}
    return len(forms) - int(forms.null_count)


@pytest.mark.parametrize("message", COUNTS)
def test_nothing_that_upb_writes_is_kept_raw(message: str) -> None:
    parsed = (parse(descriptor(message), value) for value in content(message))
    assert kept_raw(message, [instance.SerializeToString() for instance in parsed if instance is not None]) == 0


@pytest.mark.parametrize("producer", WRITES)
def test_columns_are_what_upb_reads(producer: str) -> None:
    for message, values in read_vector(producer).items():
        check_values(descriptor(message), values[:20])
