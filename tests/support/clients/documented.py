"""The settings of docs/clients.md."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.archive.documented_queries import Block, read_blocks
from tests.support.clients.programs import SOURCES, spark_jars
from tests.support.kafka.java_records import java

PAGE: Final = "clients.md"
USER: Final = "team-billing"
PASSWORD: Final = "correct horse battery"
AUTHORITY: Final = "ca.pem"
SECURED: Final = "secured"
_ADDRESSES: Final = ("127.0.0.1:9192", "archive.example.org:9192")
_SPARK_SECONDS: Final = 240.0
_TOOLS: Final[Mapping[str, str]] = {
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}


class Enough(Exception): ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    address: str
    topic: str
    group: str


def block(mark: str, *, secured: bool) -> Block:
    (result,) = [block for block in read_blocks(PAGE) if mark in block.marks and (SECURED in block.marks) is secured]
    return result


def filled(code: str, place: Place) -> str:
    for value in _ADDRESSES:
        code = code.replace(value, place.address)
    code = re.sub(r"\borders\b", place.topic, code)
    return re.sub(r"\breaders\b", place.group, code)


def read_in_python(mark: str, code: str, count: int) -> list[bytes]:
    values: list[bytes] = []

    def handle(value: bytes) -> None:
        values.append(value)
        if len(values) == count:
            raise Enough

    names: dict[str, Any] = {"handle": handle}
    try:
        exec(compile(code, PAGE, "exec"), names)
        _GOES_ON[mark](names)
    except Enough:
        pass
    finally:
        if "consumer" in names:
            names["consumer"].close()
    return values


def _poll(names: dict[str, Any]) -> None:
    while True:
        for message in names["consumer"].consume(500, timeout=1.0):
            assert message.error() is None, message.error()
            names["handle"](message.value())


def _iterate(names: dict[str, Any]) -> None:
    for record in names["consumer"]:
        names["handle"](record.value)


_GOES_ON: Final[Mapping[str, Callable[[dict[str, Any]], None]]] = {
    "confluent": _poll,
    "kafka_python": _iterate,
    "aiokafka": lambda names: asyncio.run(names["read"]()),
}
"""What follows a block that only makes a consumer, or a function that reads."""


def read_in_java(code: str, place: Place, folder: Path, count: int) -> list[bytes]:
    properties = folder / "consumer.properties"
    properties.write_text(code, encoding="utf-8")
    named = ("--bootstrap-server", place.address, "--topic", place.topic, "--command-config", str(properties))
    events = java(_TOOLS["kafka-console-consumer.sh"], *named, "--max-messages", str(count))
    return events.encode().splitlines()


def told_by_tools(code: str) -> list[str]:
    lines = [shlex.split(line) for line in code.splitlines()]
    return [java(_TOOLS[tool], *arguments) for tool, *arguments in lines]


def read_in_spark(blocks: Sequence[str], folder: Path) -> list[list[bytes]]:
    command = [sys.executable, str(SOURCES / "spark" / "documented.py"), spark_jars()]
    done = subprocess.run(
        command,
        input=json.dumps(blocks).encode(),
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=_SPARK_SECONDS,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return [[value.encode() for value in values] for values in json.loads(done.stdout)]
