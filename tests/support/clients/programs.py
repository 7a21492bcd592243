"""Clients in other languages (tests/clients), built by installed toolchains."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.local.java import find_java
from archiver.local.kafka import ARTIFACTS
from archiver.local.maven import jars
from archiver.local.releases import KAFKA
from tests.support.archive.readers import Seen
from tests.support.clients.kafka_client import IDLE_MS
from tests.support.servers.fetched import Dependency, fetched, retrieve

SOURCES = Path(__file__).parents[2] / "clients"
OLD_KAFKA = "3.9.1"
NEXT_KAFKA = "4.4.0"
SPARK_SOURCE = "4.1.3"
TIMEOUT_S = 300.0


class ToolchainMissing(Exception): ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramClient:
    name: str
    version: str
    command: tuple[str | Path, ...]

    def read(self, address: str, topic: str, from_time: int | None = None) -> Sequence[Seen]:
        more = () if from_time is None else (str(from_time),)
        return sorted(map(_seen, self._told("read", address, topic, *more)), key=lambda record: record[:2])

    def read_as_member(
        self, address: str, topic: str, group: str, count: int, *, protocol: str | None = None
    ) -> Sequence[tuple[int, int]]:
        more = () if protocol is None else (protocol,)
        answer = self._told("group", address, topic, group, str(count), str(IDLE_MS), *more)
        return [(entry["partition"], entry["offset"]) for entry in answer]

    def stream(self, address: str, topic: str) -> Sequence[Seen]:
        return sorted(map(_seen, self._told("stream", address, topic)), key=lambda record: record[:2])

    def _told(self, *arguments: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [*map(str, self.command), *arguments], capture_output=True, check=False, timeout=TIMEOUT_S
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
        return [json.loads(line) for line in done.stdout.splitlines()]


def _seen(told: dict[str, Any]) -> Seen:
    headers = tuple((header["name"], _octets(header["value"])) for header in told["headers"])
    time = int(told["time"])
    key, value = _octets(told["key"]), _octets(told["value"])
    return Seen(told["partition"], told["offset"], told["kind"], time, key, value, headers)


def _octets(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def java_client() -> ProgramClient:
    folder = jars(f"kafka-{KAFKA}", ARTIFACTS, find_java(), lambda _: None)
    return _java(KAFKA, folder)


def old_java_client() -> ProgramClient:
    return _java(OLD_KAFKA, _client_jars(OLD_KAFKA))


def kafka_streams() -> ProgramClient:
    return _java(KAFKA, _streams_jars(), name="Kafka Streams", program="StreamsReader")


def share_group_member() -> tuple[str | Path, ...]:
    return _java(KAFKA, _client_jars(KAFKA), program="ShareReader").command


def _streams_jars() -> Path:
    def fetch(folder: Path) -> None:
        needed = Dependency(organisation="org.apache.kafka", name="kafka-streams", revision=KAFKA, with_needs=True)
        silent = Dependency(organisation="org.slf4j", name="slf4j-nop", revision="1.7.36", with_needs=True)
        retrieve([needed, silent], folder)

    return fetched(f"kafka-streams-{KAFKA}", fetch)


def next_java_client() -> ProgramClient:
    return _java(NEXT_KAFKA, _client_jars(NEXT_KAFKA))


def _client_jars(version: str) -> Path:
    def fetch(folder: Path) -> None:
        needed = Dependency(organisation="org.apache.kafka", name="kafka-clients", revision=version, with_needs=True)
        silent = Dependency(organisation="org.slf4j", name="slf4j-nop", revision="1.7.36", with_needs=True)
        retrieve([needed, silent], folder)

    return fetched(f"kafka-clients-{version}", fetch)


def _java(version: str, folder: Path, *, name: str = "Java", program: str = "Reader") -> ProgramClient:
    command = (
        find_java().executable,
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{folder}/*",
        SOURCES / "java" / f"{program}.java",
    )
    return ProgramClient(name=name, version=version, command=command)


def spark_source() -> ProgramClient:
    command = (sys.executable, SOURCES / "spark" / "read.py", spark_jars())
    return ProgramClient(name="Spark's source", version=SPARK_SOURCE, command=command)


def spark_jars() -> str:
    spark = "org.apache.spark"
    needed = (
        Dependency(organisation=spark, name="spark-sql-kafka-0-10_2.13", revision=SPARK_SOURCE),
        Dependency(organisation=spark, name="spark-token-provider-kafka-0-10_2.13", revision="4.1.0-preview1"),
        Dependency(organisation="org.apache.kafka", name="kafka-clients", revision=OLD_KAFKA),
        Dependency(organisation="org.apache.commons", name="commons-pool2", revision="2.12.1"),
    )

    def fetch(folder: Path) -> None:
        for jar in needed:
            retrieve([jar], folder)

    return ",".join(map(str, sorted(fetched(f"spark-sql-kafka-{SPARK_SOURCE}", fetch).glob("*.jar"))))


def franz_go(scratch: Path) -> ProgramClient:
    return _go("franz", "franz-go", r"twmb/franz-go v(\S+)", scratch)


def sarama(scratch: Path) -> ProgramClient:
    return _go("sarama", "Sarama", r"IBM/sarama v(\S+)", scratch)


def kafka_go(scratch: Path) -> ProgramClient:
    return _go("kafkago", "segmentio/kafka-go", r"segmentio/kafka-go v(\S+)", scratch)


def _go(program: str, name: str, version: str, scratch: Path) -> ProgramClient:
    match = re.search(version, (SOURCES / "go" / "go.mod").read_text(encoding="utf-8"))
    assert match
    need("go")
    binary = scratch / program
    run("go", "build", "-o", str(binary), f"./{program}", folder=SOURCES / "go")
    return ProgramClient(name=name, version=match[1], command=(binary,))


def rust_rdkafka(scratch: Path) -> ProgramClient:
    return _rust("rdkafka", "rdkafka (Rust)", scratch)


def rskafka(scratch: Path) -> ProgramClient:
    return _rust("rskafka", "rskafka", scratch)


def _rust(program: str, name: str, scratch: Path) -> ProgramClient:
    need("cargo")
    home, target = SOURCES / "rust", os.environ.get("CARGO_TARGET_DIR") or str(scratch / "rust")
    command = ("cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target)
    run(*command, folder=home)
    locked = re.search(rf'name = "{program}"\nversion = "(\S+)"', (home / "Cargo.lock").read_text(encoding="utf-8"))
    assert locked
    return ProgramClient(name=name, version=locked[1], command=(Path(target) / "release" / program,))


def kafkajs(scratch: Path) -> ProgramClient:
    return _javascript("kafkajs", "KafkaJS", "kafkajs", scratch)


def platformatic(scratch: Path) -> ProgramClient:
    return _javascript("platformatic", "@platformatic/kafka", "@platformatic/kafka", scratch)


def _javascript(program: str, name: str, package: str, scratch: Path) -> ProgramClient:
    need("npm")
    home = scratch / "javascript"
    shutil.copytree(SOURCES / "javascript", home, dirs_exist_ok=True)
    run("npm", "install", "--silent", "--no-audit", "--no-fund", folder=home)
    version = json.loads((home / "package.json").read_text(encoding="utf-8"))["dependencies"][package]
    return ProgramClient(name=name, version=version, command=("node", home / f"{program}.mjs"))


def need(tool: str) -> None:
    if shutil.which(tool) is None:
        raise ToolchainMissing(f"{tool} is not installed")


def run(*command: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
