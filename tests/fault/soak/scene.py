"""The topics of many rounds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec

from archiver.config import load_config
from tests.fault.soak.ledger import Ledger
from tests.fault.soak.workload import Workload, raw_value, text_values
from tests.support.archive.readers import Seen
from tests.support.catalog.lossy_catalog import LossyProxy
from tests.support.servers.stack import Stack
from tests.support.storage.lossy_objects import LossyStore

MOST_FIELDS = 12
_TIMEOUT = 30.0
_BY_COLUMNS = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    stack: Stack
    catalog: LossyProxy
    store: LossyStore


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicShape:
    partitions: int
    append_time: bool
    text: bool
    partition_by: str | tuple[str, ...]

    @classmethod
    def draw(cls, noise: Random) -> TopicShape:
        return cls(
            partitions=noise.randrange(1, 5),
            append_time=noise.random() < 0.25,
            text=noise.random() < 0.4,
            partition_by=noise.choice(("hour", "day", "month")),
        )

    def by_columns(self) -> TopicShape:
        terms = (
            ("month", "bucket(2, key.__raw__)", "bucket(2, val.f1)") if self.text else ("day", "bucket(2, key.__raw__)")
        )
        return replace(self, partition_by=terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The topics of a scene. `cut`: backlogs are cut into tasks."""

    topics: tuple[TopicShape, ...]
    journal: bool
    cut: bool

    @classmethod
    def draw(cls, noise: Random) -> Shape:
        """Draw a shape. Later additions are drawn last, so that a seed's topics stay the same."""
        shape = cls(
            topics=tuple(TopicShape.draw(noise) for _ in range(noise.choice((1, 2)))),
            journal=noise.random() < 0.7,
            cut=noise.random() < 0.5,
        )
        if noise.random() < _BY_COLUMNS:
            return replace(shape, topics=tuple(topic.by_columns() for topic in shape.topics))
        return shape


@dataclass(slots=True, kw_only=True)
class Verified:
    records: dict[int, list[Seen]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Rows and size by path."""
    lost: dict[int, int] = field(default_factory=dict)
    """Offsets that the log lost before they were archived, as was accepted, by partition."""
    staged: dict[int, list[Seen]] = field(default_factory=dict)
    """Records beyond these that Kafka had and has no more, by partition: they were staged before it deleted them."""
    staged_to: dict[int, int] = field(default_factory=dict)
    """The log's start since then."""
    first: dict[int, int] = field(default_factory=dict)
    """The partitions' starts: earlier records were retired."""
    erased: set[tuple[int, int]] = field(default_factory=set)
    """What was erased, by partition and offset."""
    rewritten: bool = False
    """Other engines rewrote files: rows needn't lie in order, nor be in the files that the registry knows."""


class Subject:
    def __init__(self, stack: Stack, shape: TopicShape) -> None:
        self.stack = stack
        self.shape = shape
        self.partitions = shape.partitions
        self.topic = stack.topic(
            shape.partitions, {"message.timestamp.type": "LogAppendTime"} if shape.append_time else {}
        )
        self.fields = 1
        self.proto = stack.scratch / f"{self.topic}.proto"
        self.ledger = Ledger()
        self.verified = Verified(ends=dict.fromkeys(range(shape.partitions), 0))
        self.workload = self.producers("main")
        self._write_proto()

    @property
    def by_columns(self) -> bool:
        return not isinstance(self.shape.partition_by, str)

    @property
    def table(self) -> str:
        return f"kafka.{self.topic}"

    def producers(self, name: str) -> Workload:
        value = text_values(lambda: self.fields) if self.shape.text else raw_value
        return Workload(self.stack.bootstrap_servers, self.topic, self.ledger, value, name=name)

    def strangers(self) -> Workload:
        return Workload(self.stack.bootstrap_servers, self.topic, Ledger(), lambda noise: noise.randbytes(9))

    def add_partition(self) -> None:
        admin = self._admin()
        admin.create_partitions([NewPartitions(self.topic, self.partitions + 1)])[self.topic].result(_TIMEOUT)
        self.verified.ends[self.partitions] = 0
        self.partitions += 1

    def evolve(self) -> None:
        if self.shape.text and self.fields < MOST_FIELDS:
            self.fields += 1
            self._write_proto()

    def delete_records(self, partition: int, before: int) -> None:
        admin = self._admin()
        for done in admin.delete_records([TopicPartition(self.topic, partition, before)]).values():
            done.result(_TIMEOUT)

    def log_ends(self) -> dict[int, int]:
        asked = {TopicPartition(self.topic, number): OffsetSpec.latest() for number in range(self.partitions)}
        admin = self._admin()
        futures = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT)
        return {partition.partition: done.result(_TIMEOUT).offset for partition, done in futures.items()}

    def first_offsets(self) -> dict[int, int]:
        text = self.stack.catalog().load_table(self.table).properties.get("archiver.first-offsets", "{}")
        return {int(partition): int(offset) for partition, offset in json.loads(text).items()}

    def _write_proto(self) -> None:
        fields = " ".join(f"string f{number} = {number};" for number in range(1, self.fields + 1))
        self.proto.write_text(f'syntax = "proto3"; package soak; message Text {{ {fields} }}')

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.stack.bootstrap_servers, "log_level": 0})


class Scene:
    """`direct` is the judges' configuration, `config` the jobs'."""

    def __init__(self, ground: Ground, shape: Shape) -> None:
        self.ground = ground
        self.subjects = tuple(Subject(ground.stack, topic) for topic in shape.topics)
        self.was_rebuilt = False
        self.direct = self._configured(shape)
        self.config = self._through_proxies()

    @property
    def first(self) -> Subject:
        return self.subjects[0]

    @property
    def folder(self) -> Path:
        return self.direct.parent

    @property
    def dsn(self) -> str:
        return load_config(self.direct).registry.dsn

    def lose_registry(self) -> None:
        old, fresh = json.dumps(self.dsn), json.dumps(self.ground.stack.database())
        for path in (self.direct, self.config):
            path.write_text(path.read_text().replace(old, fresh))
        self.was_rebuilt = True

    def _configured(self, shape: Shape) -> Path:
        archive: dict[str, Any] = {"max_commit_interval": "5s", "orphan_grace": "0s"}
        if shape.cut:
            archive |= {"task_size": "60000B", "tasks_per_partition": 8}
        topics = {subject.topic: self._topic_keys(subject) for subject in self.subjects}
        path = self.ground.stack.config(topics, archive=archive, kafka={"socket.timeout.ms": "10000"})
        if not shape.journal:
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(line for line in lines if not line.startswith('"journal"')))
        return path

    @staticmethod
    def _topic_keys(subject: Subject) -> dict[str, Any]:
        by = subject.shape.partition_by
        keys = {"table": subject.table, "partition_by": by if isinstance(by, str) else list(by)}
        if not subject.shape.text:
            return keys
        return keys | {"value": {"format": "protobuf", "message": "soak.Text", "proto": str(subject.proto)}}

    def _through_proxies(self) -> Path:
        uri = f'"uri" = {json.dumps(self.ground.stack.catalog_properties["uri"])}\n'
        ours = {
            "uri": self.ground.catalog.uri,
            "s3.proxy-uri": self.ground.store.uri,
            "s3.request-timeout": "5",
            "s3.connect-timeout": "5",
        }
        lines = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in ours.items())
        path = self.direct.with_name("job.toml")
        path.write_text(self.direct.read_text().replace(uri, lines))
        path.chmod(0o600)
        return path
