"""A cluster of three brokers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka import TopicPartition as KafkaPartition
from kafka.admin import KafkaAdminClient

from tests.support.servers.embedded_servers import Servers
from tests.support.servers.stack import Stack, unique
from tests.support.timing import eventually as timing

NODES = (1, 2, 3)
_TIMEOUT = 30.0
eventually = partial(timing.eventually, every=0.1, despite=(KafkaException,))


class Brokers:
    def __init__(self, folder: Path, stack: Stack) -> None:
        self.stack = stack
        self.servers = Servers(folder)
        self._folder = folder

    def topic(self, *replicas: tuple[int, ...], **config: str) -> str:
        name = unique("spread")
        options = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(
            name,
            num_partitions=len(replicas),
            replica_assignment=[list(replica) for replica in replicas],
            config=options,
        )
        admin = self.admin()  # its futures end with it
        admin.create_topics([new], operation_timeout=_TIMEOUT)[name].result(_TIMEOUT)
        eventually(lambda: all(self.leader(name, value) > 0 for value in range(len(replicas))), f"{name} has leaders")
        return name

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.stack.bootstrap_servers, "log_level": 0})

    def leader(self, topic: str, partition: int = 0) -> int:
        return int(self._described(topic, partition).leader)

    def in_sync(self, topic: str, partition: int = 0) -> set[int]:
        return set(self._described(topic, partition).isrs)

    def move_leader(self, topic: str, node: int, partition: int = 0) -> None:
        eventually(lambda: node in self.in_sync(topic, partition), f"{node} is in sync with {topic}")
        rest = [replica for replica in self._described(topic, partition).replicas if replica != node]
        self.reassign(topic, (node, *rest), partition)
        position, admin = TopicPartition(topic, partition), self.admin()

        def elected() -> bool:
            if self.leader(topic, partition) == node:
                return True
            admin.elect_leaders(ElectionType.PREFERRED, [position]).result(_TIMEOUT)
            return False

        eventually(elected, f"{node} leads {topic}")

    def turn_leaders(self, topics: Iterable[str], by: int = 1) -> None:
        expected = {
            (topic, number): (*item.replicas[by % len(item.replicas) :], *item.replicas[: by % len(item.replicas)])
            for topic in topics
            for number, item in self.admin().list_topics(topic, timeout=10).topics[topic].partitions.items()
        }
        self._reassign(expected)
        admin, places = self.admin(), [TopicPartition(*position) for position in expected]

        def elected() -> bool:
            result = self.admin().list_topics(timeout=10).topics
            if all(result[topic].partitions[number].leader == nodes[0] for (topic, number), nodes in expected.items()):
                return True
            admin.elect_leaders(ElectionType.PREFERRED, places).result(_TIMEOUT)
            return False

        eventually(elected, "leaders have changed")

    def allow_unclean(self, topic: str, *, allowed: bool) -> None:
        entry = ConfigEntry(
            "unclean.leader.election.enable", str(allowed).lower(), incremental_operation=AlterConfigOpType.SET
        )
        resource, admin = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry]), self.admin()
        admin.incremental_alter_configs([resource])[resource].result(_TIMEOUT)

    def reassign(self, topic: str, replicas: tuple[int, ...], partition: int = 0) -> None:
        self._reassign({(topic, partition): replicas})
        eventually(lambda: self._replicas_are(topic, partition, replicas), f"{topic} is on {replicas}")

    def _reassign(self, wanted: Mapping[tuple[str, int], tuple[int, ...]]) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.stack.bootstrap_servers.split(","))
        try:
            admin.alter_partition_reassignments(
                {KafkaPartition(*position): list(replicas) for position, replicas in wanted.items()}
            )
        finally:
            admin.close()

    def _replicas_are(self, topic: str, partition: int, replicas: tuple[int, ...]) -> bool:
        described = self._described(topic, partition)
        return tuple(described.replicas) == replicas and set(described.isrs) == set(replicas)

    def controller(self) -> int:
        states = [
            json.loads((self._folder / f"kafka-{node}" / "data" / "__cluster_metadata-0" / "quorum-state").read_text())
            for node in NODES
        ]
        return int(max(states, key=lambda state: state["leaderEpoch"])["leaderId"])

    def end(self, node: int, *, killed: bool) -> None:
        self.servers.end(f"kafka-{node}", killed=killed)

    def suspend(self, node: int) -> None:
        self.servers.suspend(f"kafka-{node}")

    def resume(self, node: int) -> None:
        self.servers.resume(f"kafka-{node}")

    def up(self) -> None:
        self.servers.up()

    def whole(self, *topics: str) -> None:
        def complete() -> bool:
            result = self.admin().list_topics(timeout=10).topics
            return all(
                set(partition.isrs) == set(partition.replicas)
                for name in topics or result
                for partition in result[name].partitions.values()
            )

        eventually(complete, "all replicas are in sync")

    def _described(self, topic: str, partition: int) -> Any:
        def known() -> Any:
            return self.admin().list_topics(topic, timeout=10).topics[topic].partitions.get(partition)

        return eventually(known, f"{topic}-{partition} is known")
