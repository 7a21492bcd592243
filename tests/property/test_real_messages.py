"""Published messages against upb."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schema_mapping import compile_mapping
from tests.support.schemas.kernel_check import NATIVE, check_values
from tests.support.schemas.random_messages import damaged, random_message
from tests.support.schemas.real_schemas import PACKAGES, messages

SAMPLE = 24
VALUES = 6


def check_message(package: str, name: str) -> None:
    descriptor = messages(package)[name]
    written = [
        random_message(seed, descriptor).SerializePartialToString(deterministic=seed % 2 == 0) for seed in range(VALUES)
    ]
    mapping = compile_mapping(descriptor)
    rows = mapping.decode(pa.array(written, pa.binary()))
    assert rows.field("__err__").null_count == VALUES
    assert rows.field("__raw__").null_count == VALUES, "what upb writes needn't be kept raw"
    assert mapping.encode(rows).to_pylist() == written
    values = [*written, None, *(damaged(seed, value) for seed, value in enumerate(written))]
    for options in (None, NATIVE):
        check_values(descriptor, values, options=options)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_sample_of_every_package(package: str) -> None:
    names = list(messages(package))
    for name in names[:: max(1, len(names) // SAMPLE)]:
        check_message(package, name)


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("xds-protos", "envoy.config.bootstrap.v3.Bootstrap"),
        ("perfetto", "perfetto.protos.TracePacket"),
        ("perfetto", "perfetto.protos.FtraceEvent"),
        ("xds-protos", "cel.expr.conformance.proto2.TestAllTypes"),
        ("xds-protos", "cel.expr.conformance.proto3.TestAllTypes"),
        ("gtfs-realtime-bindings", "transit_realtime.FeedMessage"),
        ("opentelemetry-proto", "opentelemetry.proto.metrics.v1.MetricsData"),
    ],
)
def test_the_largest_and_the_oddest(package: str, name: str) -> None:
    check_message(next(item for item in PACKAGES if item.rpartition("-")[0] == package), name)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("package", PACKAGES)
def test_every_message(package: str) -> None:
    for name in messages(package):
        check_message(package, name)
