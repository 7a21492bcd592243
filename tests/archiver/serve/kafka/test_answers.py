"""APIs in all versions, read by kio."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from archiver.serve.kafka.apis import APIS
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake, Wire, framed, request, response

ORDERS = "orders"
NO_END = (1 << 63) - 1
BATCHES = [
    build([Record(value=b"%d" % at, timestamp=1_000 + at)] * 3, base_offset=at, leader_epoch=epoch)
    for at, epoch in ((2, 0), (5, 0), (10, 3))
]
END = 20
VERSIONS = [(api.key, version) for api in APIS.values() for version in range(api.least, api.most + 1)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    lake = archived(tmp_path_factory.mktemp("lake"), b"".join(BATCHES), end=END, files=3)
    lake.set(**{"archiver.offsets": '{"0":[20,3]}'})
    with ServedLake(lake) as served:
        yield served


@pytest.fixture
def wire(endpoint: ServedLake) -> Iterator[Wire]:
    with Wire(endpoint.port) as client:
        yield client


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_every_version_is_answered(wire: Wire, api_key: int, version: int) -> None:
    wire.ask(request(api_key, version, replica_id=-1))


@pytest.mark.parametrize("version", range(5))
def test_versions_are_told(wire: Wire, version: int) -> None:
    answer = wire.ask(request(18, version))
    assert answer.error_code == ErrorCode.none
    assert {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys} == {
        entry.key: (entry.least, entry.most) for entry in APIS.values()
    }
    assert APIS[0].least == 3, "librdkafka fetches only where it finds Produce"


@pytest.mark.parametrize(
    ("version", "more"),
    [(5, b""), (5, b"\x0ccluster-id!\0\0\0\x01\0"), (6, b""), (99, bytes(40)), (0x7FFF, b"\xff" * 5)],
    ids=["5", "5 with what it names", "6", "99", "the newest there can be"],
)
def test_a_newer_client_is_told_what_is_known(wire: Wire, version: int, more: bytes) -> None:
    frame = bytearray(framed(request(18, 4), 9) + more)
    frame[2:4] = version.to_bytes(2, "big")
    wire.send(bytes(frame))
    answer = response(load_response_schema(18, 0), wire.receive(), 9)
    assert answer.error_code == ErrorCode.unsupported_version
    versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    assert versions == {entry.key: (entry.least, entry.most) for entry in APIS.values()}
    assert versions[18] == (0, 4)
    assert wire.ask(request(18, versions[18][1])).error_code == ErrorCode.none


def test_metadata_by_name_by_id_and_of_all(wire: Wire, endpoint: ServedLake) -> None:
    (topic,) = wire.ask(request(3, 13, topics=None)).topics
    assert (topic.name, topic.topic_id) == (ORDERS, endpoint.topics.open[0].topic_id)
    (partition,) = topic.partitions
    assert (partition.partition_index, partition.leader_id, partition.leader_epoch) == (0, 1, 1 << 30)
    assert wire.ask(request(3, 0, topics=())).topics[0].name == ORDERS
    assert wire.ask(request(3, 1, topics=())).topics == ()
    (named,) = wire.ask(request(3, 12, topic_id=None, name=ORDERS)).topics
    (by_id,) = wire.ask(request(3, 12, topic_id=topic.topic_id, name=None)).topics
    assert named.topic_id == by_id.topic_id == topic.topic_id
    (unknown,) = wire.ask(request(3, 12, topic_id=UUID(int=5), name=None)).topics
    assert unknown.error_code == ErrorCode.unknown_topic_id


def offset(wire: Wire, time: int, *, partition: int = 0) -> tuple[int, int, int]:
    asked = request(2, 11, name=ORDERS, timestamp=time, partition_index=partition)
    (result,) = wire.ask(asked).topics[0].partitions
    return result.error_code or result.offset, result.timestamp, result.leader_epoch


def test_offsets_by_name_and_by_time(wire: Wire) -> None:
    assert offset(wire, -1) == (20, -1, 3)
    assert offset(wire, -2) == (2, -1, -1)
    assert offset(wire, -4) == (2, -1, -1)
    assert offset(wire, -3) == (10, 1_010, 3)
    assert offset(wire, -5) == (-1, -1, -1)
    assert offset(wire, -6) == (-1, -1, -1)
    assert offset(wire, -7) == (ErrorCode.unsupported_version, -1, -1)
    assert offset(wire, 0) == (2, 1_002, 0)
    assert offset(wire, 1_003) == (5, 1_005, 0)
    assert offset(wire, 1_006) == (10, 1_010, 3)
    assert offset(wire, 1_011) == (-1, -1, -1)
    assert offset(wire, -1, partition=1)[0] == ErrorCode.unknown_topic_or_partition
    assert offset(wire, -1, partition=-1)[0] == ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize(
    ("epoch", "told"), [(0, (0, 10)), (1, (0, 10)), (3, (3, NO_END)), (9, (9, NO_END)), (-1, (-1, -1))]
)
def test_where_leader_epochs_end(wire: Wire, epoch: int, told: tuple[int, int]) -> None:
    (partition,) = wire.ask(request(23, 4, topic=ORDERS, partition=0, leader_epoch=epoch)).topics[0].partitions
    assert (partition.leader_epoch, partition.end_offset) == told


def test_pages_of_partitions(wire: Wire) -> None:
    asked = request(75, 0, name=ORDERS, cursor=None, response_partition_limit=1)
    answer = wire.ask(asked)
    assert (answer.topics[0].name, len(answer.topics[0].partitions), answer.next_cursor) == (ORDERS, 1, None)


REFUSED = {
    0: ErrorCode.topic_authorization_failed,
    19: ErrorCode.policy_violation,
    20: ErrorCode.policy_violation,
    21: ErrorCode.policy_violation,
    22: ErrorCode.transactional_id_authorization_failed,
    33: ErrorCode.policy_violation,
    37: ErrorCode.policy_violation,
    44: ErrorCode.policy_violation,
}


@pytest.mark.parametrize(("api_key", "version"), [each for each in VERSIONS if each[0] in REFUSED])
def test_writes_are_refused(wire: Wire, api_key: int, version: int) -> None:
    assert errors_in(wire.ask(request(api_key, version))) == {REFUSED[api_key]}


def errors_in(message: Any) -> set[ErrorCode]:
    errors = set()
    for name in message.__dataclass_fields__:
        value = getattr(message, name)
        if isinstance(value, ErrorCode):
            errors.add(value)
        for item in value if isinstance(value, tuple) else ():
            if hasattr(item, "__dataclass_fields__"):
                errors |= errors_in(item)
    return errors


def test_who_produces_without_wanting_an_answer_is_cut_off(endpoint: ServedLake) -> None:
    with Wire(endpoint.port) as wire:
        wire.send(framed(request(0, 9, acks=0), 1))
        assert wire.is_closed()


def test_settings_of_a_topic(wire: Wire) -> None:
    asked = request(32, 4, resource_type=2, resource_name=ORDERS, configuration_keys=None)
    (result,) = wire.ask(asked).results
    assert {config.name: config.value for config in result.configs}["retention.ms"] == "-1"
    asked = request(32, 4, resource_type=2, resource_name="none", configuration_keys=None)
    assert wire.ask(asked).results[0].error_code == ErrorCode.unknown_topic_or_partition


def test_telemetry_interval_fits_32_bits_of_microseconds(endpoint: ServedLake) -> None:
    """librdkafka sends requests without end if it overflows."""
    with Wire(endpoint.port) as wire:
        answer = wire.ask(request(71, 0, client_instance_id=UUID(int=0)))
    assert timedelta(minutes=1) <= answer.push_interval < timedelta(microseconds=2**31)


@pytest.mark.parametrize("kind", [8, 16, 32])
def test_loggers_client_metrics_and_groups_have_no_settings(wire: Wire, kind: int) -> None:
    (result,) = wire.ask(request(32, 4, resource_type=kind, resource_name="1", configuration_keys=None)).results
    assert (result.error_code, result.configs) == (ErrorCode.none, ())


def test_kinds_of_settings_that_there_are_not_are_refused(wire: Wire) -> None:
    (result,) = wire.ask(request(32, 4, resource_type=64, resource_name="1", configuration_keys=None)).results
    assert result.error_code == ErrorCode.invalid_request
