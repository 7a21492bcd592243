"""`serve.compression` and `serve.read_ahead`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from archiver.codecs import Codec
from archiver.config import load_config
from tests.support.archive.archived_batches import header_of, split
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, wait_until_decided
from tests.support.clients.in_python import ConfluentKafka
from tests.support.kafka import odd_records
from tests.support.servers.endpoint_here import serving_here
from tests.support.servers.served_lake import Wire, request
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

_CODEC_BITS, _CONTROL_BIT = 0b111, 0b100000
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """Batches of every codec, and librdkafka's reading from Kafka."""

    config: Path
    topic: str
    records: list[Seen]


@pytest.fixture(scope="module")
def archived(stack: Stack) -> Archived:
    topic = stack.topic(1)
    odd_records.produce_odd_records(stack.bootstrap_servers, topic, 1)
    odd_records.produce_transactions(stack.bootstrap_servers, topic, 1)
    wait_until_decided(stack, topic, 1)
    config = stack.config({topic: {}})
    archive_once(config)
    return Archived(config=config, topic=topic, records=list(ConfluentKafka().read(stack.bootstrap_servers, topic)))


def codecs_of(address: str, topic: str) -> set[Codec]:
    with Wire(int(address.rpartition(":")[2])) as wire:
        answer = wire.ask(
            request(
                1,
                12,
                topic=topic,
                partition=0,
                fetch_offset=0,
                max_bytes=64 * _MIB,
                partition_max_bytes=64 * _MIB,
                min_bytes=1,
                max_wait=timedelta(0),
                session_id=0,
                session_epoch=-1,
                forgotten_topics_data=(),
            )
        )
    headers = map(header_of, split(answer.responses[0].partitions[0].records))
    return {Codec(header["attributes"] & _CODEC_BITS) for header in headers if not header["attributes"] & _CONTROL_BIT}


@pytest.mark.parametrize(
    ("compression", "read_ahead", "codecs"),
    [
        ("original", "4MiB", set(Codec)),
        ("none", "0", {Codec.NONE}),
        ("gzip", "64KiB", {Codec.GZIP}),
        ("snappy", "1GiB", {Codec.SNAPPY}),
        ("lz4", "0", {Codec.LZ4}),
        ("zstd", "4MiB", {Codec.ZSTD}),
    ],
)
def test_records_are_kafkas_in_any_codec(
    archived: Archived, compression: str, read_ahead: str, codecs: set[Codec]
) -> None:
    changes = {"ARCHIVER__SERVE__COMPRESSION": compression, "ARCHIVER__SERVE__READ_AHEAD": read_ahead}
    with serving_here(load_config(archived.config, {**changes, "ARCHIVER__SERVE__LISTEN": "127.0.0.1:0"})) as address:
        assert list(ConfluentKafka().read(address, archived.topic)) == archived.records != []
        assert codecs_of(address, archived.topic) == codecs
