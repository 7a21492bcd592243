"""Nodes are killed in turn under load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.fault.serving.group import Group
from tests.fault.serving.scene import Scene
from tests.support.servers.serve_nodes import Nodes
from tests.support.servers.stack import Stack, unique

PARTITIONS = 12
NODES = 3
MEMBERS = 4
PROTOCOLS = ("range", "cooperative-sticky", "consumer")
RECORD_BYTES = 100
PER_SECOND = 100.0
GROWN_EVERY_S = 15.0
GROWN_BY = 1_200
AWAY_S = 8.0
"""Longer than the other nodes wait before they give a node up."""
ASKED_S = 4.0
"""How long a group's coordinator is looked for. While one is being given up there is none."""
PATIENCE_S = 60.0


class Killing:
    """Kills a node every few seconds. It returns at once or after its session, in turns."""

    def __init__(self, nodes: Nodes, groups: list[Group], noise: Random) -> None:
        self._nodes, self._groups, self._noise = nodes, groups, noise
        self.kills = self.of_coordinators = self.given_up = 0
        self.ended_by_themselves = 0

    def strike(self) -> None:
        index = self._noise.randrange(NODES)
        if self.kills % 2 == 0:
            coordinator = self._coordinator()
            if coordinator is not None:
                index = coordinator
                self.of_coordinators += 1
        if not self._nodes.runs(index):
            self.ended_by_themselves += 1
        self._nodes.kill(index)
        self.kills += 1
        if self.kills % 4 < 2:
            self.given_up += 1
            time.sleep(AWAY_S)
        self._nodes.start(index)

    def _coordinator(self) -> int | None:
        name = self._noise.choice(self._groups).name
        admin = AdminClient({"bootstrap.servers": self._nodes.bootstrap, "log_level": 0})
        try:
            asked = admin.describe_consumer_groups([name], request_timeout=ASKED_S)
            coordinator = asked[name].result(ASKED_S + 1).coordinator
        except (KafkaException, TimeoutError):
            return None
        return self._nodes.ports.index(coordinator.port)


class Growing:
    def __init__(self, scene: Scene) -> None:
        self.count = 0
        self._scene = scene
        self._over = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._grow)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _grow(self) -> None:
        try:
            while not self._over.wait(GROWN_EVERY_S):
                self._scene.grow(GROWN_BY)
                self.count += 1
        except Exception as error:  # noqa: BLE001 - raised where the block ends
            self._failed = error


def not_settled(groups: list[Group], when: str) -> list[str]:
    return [
        f"{group.name}: partitions weren't shared {when}: {group.shares()}"
        for group in groups
        if group.settles(PATIENCE_S) is None
    ]


def killed_nodes(
    stack: Stack, folder: Path, *, minutes: float, every: float, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    records = int(PER_SECOND * MEMBERS * 60 * minutes)
    scene = Scene(stack, partitions=PARTITIONS, records=records, size=RECORD_BYTES, serve={"refresh": "500ms"})
    wrong: list[str] = []
    with ExitStack() as ending:
        nodes = ending.enter_context(Nodes(scene.config, NODES, log=folder / "nodes.log"))
        groups = [
            ending.enter_context(
                Group(
                    folder / protocol,
                    bootstrap=nodes.bootstrap,
                    name=unique("group"),
                    topic=scene.topic,
                    protocol=protocol,
                    per_second=PER_SECOND,
                    partitions=PARTITIONS,
                )
            )
            for protocol in PROTOCOLS
        ]
        for group in groups:
            for _ in range(MEMBERS):
                group.join()
        wrong += not_settled(groups, "in the beginning")
        killing = Killing(nodes, groups, Random(seed))
        with Growing(scene) as growing:
            began = time.monotonic()
            for number in range(1, round(60 * minutes / every) + 1):
                killing.strike()
                say(f"{killing.kills} kills, {[group.total for group in groups]} read of {sum(scene.ends.values())}")
                time.sleep(max(0.0, began + number * every - time.monotonic()))
        for group in groups:
            group.drain()
        wrong += not_settled(groups, "in the end")
        wrong += [
            f"{group.name}: the end was never reached"
            for group in groups
            if not group.has_reached(scene.ends, 2 * PATIENCE_S)
        ]
        summaries = [
            {"protocol": name, **entry.judged(scene.ends).summary}
            for name, entry in zip(PROTOCOLS, groups, strict=True)
        ]
    return {
        "nodes": NODES,
        "minutes": minutes,
        "kills": killing.kills,
        "of_coordinators": killing.of_coordinators,
        "away_until_given_up": killing.given_up,
        "ended_by_themselves": killing.ended_by_themselves,
        "commits_of_the_archive": growing.count,
        "records": sum(scene.ends.values()),
        **{key: sum(entry[key] for entry in summaries) for key in ("delivered", "again", "commits", "commits_refused")},
        "longest_silence_s": max(entry["longest_silence_s"] for entry in summaries),
        "wrong": len(wrong) + killing.ended_by_themselves + sum(len(entry["wrong"]) for entry in summaries),
        "groups": summaries,
        "troubles": wrong,
    }
