"""The attacks of a siege, as bytes and portions."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.support.servers.hostile import Attack
from tests.support.servers.served_lake import framed, request

NAMES = 10_000
PARTITIONS = 50_000


def frames(*messages: Any) -> bytes:
    encoded = (framed(message, number) for number, message in enumerate(messages))
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in encoded)


def attacks(topic: str) -> Mapping[str, Attack]:
    names = tuple(f"a-name-{number}" for number in range(NAMES))
    metadata = request(3, 9, name=topic, allow_auto_topic_creation=False)
    return {
        "pipelined versions": Attack(payload=struct.pack(">ihhih", 10, 18, 0, 7, -1) * 5000),
        "pipelined metadata": Attack(payload=frames(*[metadata] * 500)),
        "many groups": Attack(payload=frames(request(15, 5, groups=names))),
        "many configs": Attack(payload=frames(_configs(names))),
        "repeated names": Attack(payload=frames(replace(metadata, topics=metadata.topics * 40_000))),
        "unknown names": Attack(payload=frames(_unknown(metadata, names)), hangs_up=True),
        "many offsets": Attack(payload=frames(_offsets(topic))),
        "joins without an id": Attack(payload=frames(*map(_join, range(500)))),
        "silence": Attack(payload=b""),
        "wrong frames": Attack(payload=b"\xff" * 64, pause=0.01),
        "slow frames": Attack(payload=struct.pack(">i", 900_000) + b"\0" * 900_000, portion=4096, pause=1.0),
        "patterns": Attack(payload=frames(*map(_pattern, range(20)))),
        "fetch sessions": Attack(payload=frames(_session(topic)), pause=0.5),
        "commits": Attack(payload=frames(*(_commit(topic, number) for number in range(500)))),
        "random bytes": Attack(payload=random.Random(7).randbytes(64 << 10), pause=0.01),
    }


def rounds(names: Sequence[str], connections: int, seed: int) -> Iterator[list[str]]:
    drawn = random.Random(seed)
    while True:
        chosen = [names[number % len(names)] for number in range(connections)]
        drawn.shuffle(chosen)
        yield chosen


def _configs(names: tuple[str, ...]) -> Any:
    message = request(32, 4, resource_type=2)
    (resource,) = message.resources
    return replace(message, resources=tuple(replace(resource, resource_name=name) for name in names))


def _unknown(metadata: Any, names: tuple[str, ...]) -> Any:
    (topic,) = metadata.topics
    return replace(metadata, topics=tuple(replace(topic, name=name) for name in names))


def _offsets(topic: str) -> Any:
    message = request(2, 7, name=topic, partition_index=0, timestamp=-1)
    (named,) = message.topics
    partitions = tuple(replace(named.partitions[0], partition_index=number) for number in range(PARTITIONS))
    return replace(message, topics=(replace(named, partitions=partitions),))


def _join(number: int) -> Any:
    return request(
        11,
        5,
        group_id=f"invented-{number}",
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        session_timeout=timedelta(minutes=5),
        rebalance_timeout=timedelta(minutes=1),
    )


def _pattern(number: int) -> Any:
    return request(
        68,
        1,
        group_id=f"patterns-{number}",
        member_id=f"member-{number}",
        member_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=timedelta(minutes=1),
        subscribed_topic_names=None,
        subscribed_topic_regex=rf"(\pL|\pN){{{300 + number}}}",
        server_assignor=None,
        topic_partitions=(),
    )


def _session(topic: str) -> Any:
    message = request(
        1,
        11,
        replica_id=-1,
        topic=topic,
        fetch_offset=0,
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=1,
        partition_max_bytes=1,
        session_id=0,
        session_epoch=0,
        current_leader_epoch=-1,
        forgotten_topics_data=(),
    )
    (named,) = message.topics
    partitions = tuple(replace(named.partitions[0], partition=number) for number in range(NAMES))
    return replace(message, topics=(replace(named, partitions=partitions),))


def _commit(topic: str, number: int) -> Any:
    return request(
        8,
        7,
        group_id=f"invented-{number}",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        name=topic,
        partition_index=0,
        committed_offset=1,
        committed_metadata="m" * 4000,
    )
