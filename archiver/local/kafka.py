"""One KRaft node or three, without retention and with any timestamp and large messages."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from archiver.errors import LocalStackError
from archiver.local import releases
from archiver.local.java import find_java
from archiver.local.maven import Artifact, jars
from archiver.local.part import PartContext, Say
from archiver.local.ports import HOST, accepts
from archiver.local.process import Launch, environment, tail
from archiver.local.state import StackState

PORT = "kafka"
CONTROLLER_PORT = "kafka-controller"
CLUSTER = 3
"""Nodes of a cluster: the fewest that survive the loss of one."""
MAX_MESSAGE_BYTES = 64 * 1024 * 1024

ARTIFACTS = (
    Artifact(organisation="org.apache.kafka", name="kafka_2.13", revision=releases.KAFKA),
    Artifact(organisation="org.apache.kafka", name="kafka-tools", revision=releases.KAFKA, transitive=False),
    Artifact(organisation="org.apache.logging.log4j", name="log4j-slf4j-impl", revision="2.25.4"),
)

_FOREVER = 2**63 - 1
_PROPERTIES = "server.properties"
_LOGGING = "log4j2.properties"
_VOTERS = "controller.quorum.voters"
_HEAP = ("-Xms256m", "-Xmx1g")
_HEAP_IN_CLUSTER = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Three nodes share a machine. So each is small, and compiles early rather than well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """`node` counts from 1."""

    node: int = 1
    nodes: int = 1
    version = releases.KAFKA
    stop_signal = signal.SIGTERM

    @property
    def name(self) -> str:
        return self.port_names[0]

    @property
    def title(self) -> str:
        return "Apache Kafka" if self.nodes == 1 else f"Apache Kafka {self.node}"

    @property
    def port_names(self) -> tuple[str, str]:
        return _port_names(self.node, self.nodes)

    def prepare(self, context: PartContext, say: Say) -> None:
        classpath = _classpath(say)
        context.folder.mkdir(parents=True, exist_ok=True)
        properties = "".join(f"{key}={value}\n" for key, value in broker_settings(context.state, self.node).items())
        (context.folder / _PROPERTIES).write_text(properties, encoding="utf-8")
        logging = Path(__file__).with_name(_LOGGING).read_text(encoding="utf-8")
        (context.folder / _LOGGING).write_text(logging, encoding="utf-8")
        if not (context.folder / "data" / "meta.properties").exists():
            say("formatting the log folder")
            _format(context, classpath)

    def launch(self, context: PartContext) -> Launch:
        return Launch(
            argv=(
                find_java().executable,
                *(_HEAP if self.nodes == 1 else _HEAP_IN_CLUSTER),
                "-XX:+ExitOnOutOfMemoryError",
                f"-Dlog4j2.configurationFile={_LOGGING}",
                "-cp",
                _classpath(lambda _: None),
                "kafka.Kafka",
                _PROPERTIES,
            ),
            cwd=context.folder,
            log=context.log,
        )

    def tidy(self, context: PartContext) -> None: ...

    def suits(self, context: PartContext) -> bool:
        """Whether it was started with the current controllers."""
        try:
            written = (context.folder / _PROPERTIES).read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        return f"{_VOTERS}={_voters(context.state)}\n" in written

    def is_ready(self, context: PartContext) -> bool:
        port = context.port(self.port_names[0])
        if not accepts(port):
            return False
        client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
        try:
            return self.node in client.list_topics(timeout=3).brokers
        except KafkaException:
            return False


def bootstrap_servers(state: StackState) -> str:
    return ",".join(f"{HOST}:{state.ports[broker]}" for broker, _ in _every_port(state))


def broker_settings(state: StackState, node: int = 1) -> Mapping[str, str | int]:
    broker, own = _port_names(node, state.brokers)
    listener, controller = f"{HOST}:{state.ports[broker]}", f"{HOST}:{state.ports[own]}"
    copies = state.brokers
    in_sync = copies // 2 + 1
    return {
        "process.roles": "broker,controller",
        "node.id": node,
        _VOTERS: _voters(state),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{listener},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": "data",
        "auto.create.topics.enable": "false",
        "num.partitions": 1,
        "default.replication.factor": copies,
        "min.insync.replicas": 1,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": 0,
        # After a kill, the new broker waits until the old one's session has ended.
        "broker.session.timeout.ms": 6_000,
        "broker.heartbeat.interval.ms": 1_000,
        "message.max.bytes": MAX_MESSAGE_BYTES,
        "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
        "socket.request.max.bytes": 2 * MAX_MESSAGE_BYTES,
        "log.message.timestamp.before.max.ms": _FOREVER,
        "log.message.timestamp.after.max.ms": _FOREVER,
        "log.retention.ms": -1,
        "log.retention.bytes": -1,
        "log.cleaner.dedupe.buffer.size": 32 * 1024 * 1024,
        **({} if copies == 1 else _cluster_settings(node)),
    }


def _cluster_settings(node: int) -> Mapping[str, str | int]:
    return {
        "broker.session.timeout.ms": 4_000,
        "broker.heartbeat.interval.ms": 500,
        "replica.lag.time.max.ms": 4_000,
        "controller.quorum.election.timeout.ms": 500,
        "controller.quorum.fetch.timeout.ms": 2_000,
        # Leaders stay where an election or a test put them.
        "auto.leader.rebalance.enable": "false",
        "broker.rack": f"rack-{node}",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }


def _voters(state: StackState) -> str:
    ports = enumerate(_every_port(state), start=1)
    return ",".join(f"{node}@{HOST}:{state.ports[controller]}" for node, (_, controller) in ports)


def _every_port(state: StackState) -> tuple[tuple[str, str], ...]:
    return tuple(_port_names(node, state.brokers) for node in range(1, state.brokers + 1))


def _port_names(node: int, nodes: int) -> tuple[str, str]:
    return (PORT, CONTROLLER_PORT) if nodes == 1 else (f"{PORT}-{node}", f"{PORT}-{node}-controller")


def fetch_kafka(say: Say) -> Path:
    """Raises LocalStackError."""
    return jars(f"kafka-{releases.KAFKA}", ARTIFACTS, find_java(), say)


def _classpath(say: Say) -> str:
    return f"{fetch_kafka(say)}/*"


def _format(context: PartContext, classpath: str) -> None:
    command = [find_java().executable, "-cp", classpath, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
    command += ["--cluster-id", context.state.cluster_id, "--config", _PROPERTIES]
    with context.log.open("ab") as log:
        done = subprocess.run(  # noqa: S603
            command,
            cwd=context.folder,
            env=environment({}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    if done.returncode != 0:
        raise LocalStackError(f"Kafka could not format its log folder\n{tail(context.log)}", log=str(context.log))
