"""Apache Kafka as one KRaft node, from the jars of its release, with settings for development.

Anything that would lose or refuse a test's records is switched off: no retention, any timestamp, large messages.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from archiver.errors import LocalStackError
from archiver.local.java import find_java
from archiver.local.maven import Artifact, jars
from archiver.local.part import Say, Seat
from archiver.local.ports import HOST, accepts
from archiver.local.process import Launch, environment, tail
from archiver.local.state import StackState

VERSION = "4.3.1"
PORT = "kafka"
CONTROLLER_PORT = "kafka-controller"
MAX_MESSAGE_BYTES = 64 * 1024 * 1024

ARTIFACTS = (
    Artifact(organisation="org.apache.kafka", name="kafka_2.13", revision=VERSION),
    Artifact(organisation="org.apache.kafka", name="kafka-tools", revision=VERSION, transitive=False),
    Artifact(organisation="org.apache.logging.log4j", name="log4j-slf4j-impl", revision="2.25.4"),
)

_FOREVER = 2**63 - 1
_PROPERTIES = "server.properties"
_LOGGING = "log4j2.properties"
_HEAP = ("-Xms256m", "-Xmx1g")


@dataclass(frozen=True, slots=True)
class Kafka:
    """The broker and controller in one process."""

    name = "kafka"
    title = "Apache Kafka"
    version = VERSION
    port_names = (PORT, CONTROLLER_PORT)
    stop_signal = signal.SIGTERM

    def prepare(self, seat: Seat, say: Say) -> None:
        """Fetch the jars, write the settings, format the log folder the first time."""
        classpath = _classpath(say)
        seat.folder.mkdir(parents=True, exist_ok=True)
        properties = "".join(f"{key}={value}\n" for key, value in broker_settings(seat.state).items())
        (seat.folder / _PROPERTIES).write_text(properties, encoding="utf-8")
        logging = Path(__file__).with_name(_LOGGING).read_text(encoding="utf-8")
        (seat.folder / _LOGGING).write_text(logging, encoding="utf-8")
        if not (seat.folder / "data" / "meta.properties").exists():
            say("formatting the log folder")
            _format(seat, classpath)

    def launch(self, seat: Seat) -> Launch:
        """`kafka.Kafka`; its files are named relative to its folder, which may hold any character."""
        return Launch(
            argv=(
                find_java().executable,
                *_HEAP,
                "-XX:+ExitOnOutOfMemoryError",
                f"-Dlog4j2.configurationFile={_LOGGING}",
                "-cp",
                _classpath(lambda _: None),
                "kafka.Kafka",
                _PROPERTIES,
            ),
            cwd=seat.folder,
            log=seat.log,
        )

    def tidy(self, seat: Seat) -> None:
        """Nothing lies outside its folder."""

    def is_ready(self, seat: Seat) -> bool:
        """Whether the broker is registered with its controller, so that topics can be created."""
        if not accepts(seat.port(PORT)):
            return False
        client = AdminClient({"bootstrap.servers": bootstrap_servers(seat.state), "log_level": 0})
        try:
            return bool(client.list_topics(timeout=3).brokers)
        except KafkaException:
            return False


def bootstrap_servers(state: StackState) -> str:
    """The broker's address as Kafka clients take it."""
    return f"{HOST}:{state.ports[PORT]}"


def broker_settings(state: StackState) -> Mapping[str, str | int]:
    """What `server.properties` holds."""
    listener, controller = bootstrap_servers(state), f"{HOST}:{state.ports[CONTROLLER_PORT]}"
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{listener},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": "data",
        "auto.create.topics.enable": "false",
        "num.partitions": 1,
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        # After a kill the new broker waits for the old one's session to end.
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
    }


def _classpath(say: Say) -> str:
    return f"{jars(f'kafka-{VERSION}', ARTIFACTS, find_java(), say)}/*"


def _format(seat: Seat, classpath: str) -> None:
    command = [find_java().executable, "-cp", classpath, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
    command += ["--cluster-id", seat.state.cluster_id, "--config", _PROPERTIES]
    with seat.log.open("ab") as log:
        done = subprocess.run(  # noqa: S603
            command,
            cwd=seat.folder,
            env=environment({}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    if done.returncode != 0:
        raise LocalStackError(f"Kafka could not format its log folder\n{tail(seat.log)}", log=str(seat.log))
