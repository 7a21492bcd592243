"""Kafka's console consumer and `kafka-consumer-groups.sh`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from archiver.local.java import find_java
from archiver.local.kafka import ARTIFACTS
from archiver.local.maven import jars
from archiver.local.releases import KAFKA
from tests.support.clients.programs import OLD_KAFKA
from tests.support.servers.fetched import Dependency, fetched, retrieve

_SECONDS: Final = 240.0
_SHOWN: Final = ("timestamp", "partition", "offset", "headers", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaTools:
    folder: Path
    shown_by: str

    def read(self, address: str, topic: str, group: str, count: int) -> list[str]:
        shown = [part for value in _SHOWN for part in (self.shown_by, f"print.{value}=true")]
        named = ("--bootstrap-server", address, "--topic", topic, "--group", group, "--from-beginning")
        limits = ("--max-messages", str(count), "--isolation-level", "read_committed")
        return sorted(self._run("consumer.ConsoleConsumer", *named, *limits, *shown).split("\n"))

    def groups(self, address: str) -> set[str]:
        return set(self._of_groups(address, "--list").split())

    def offsets(self, address: str, group: str) -> Mapping[int, tuple[int, int, int]]:
        events = [line.split() for line in self._of_groups(address, "--describe", "--group", group).splitlines()]
        return {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in events if row[:1] == [group]}

    def begin_again(self, address: str, group: str, topic: str) -> None:
        self._of_groups(address, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")

    def forget(self, address: str, group: str) -> None:
        self._of_groups(address, "--delete", "--group", group)

    def _of_groups(self, address: str, *arguments: str) -> str:
        return self._run("consumer.group.ConsumerGroupCommand", "--bootstrap-server", address, *arguments)

    def _run(self, tool: str, *arguments: str) -> str:
        command = (find_java().executable, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{self.folder}/*")
        done = subprocess.run(
            [*command, f"org.apache.kafka.tools.{tool}", *arguments],
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
        return done.stdout.decode(errors="backslashreplace")


def tools_of(version: str) -> JavaTools:
    if version == KAFKA:
        folder = jars(f"kafka-{KAFKA}", ARTIFACTS, find_java(), lambda _: None)
    else:
        folder = fetched(f"kafka-tools-{version}", partial(_fetch, version))
    return JavaTools(folder=folder, shown_by="--property" if version == OLD_KAFKA else "--formatter-property")


def _fetch(version: str, folder: Path) -> None:
    tools = Dependency(organisation="org.apache.kafka", name="kafka-tools", revision=version, with_needs=True)
    retrieve([tools], folder)
