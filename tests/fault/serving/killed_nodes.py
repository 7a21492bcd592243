"""Nodes of a cluster are killed under load, one after the other: groups go on, and the archive grows meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

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
"""Longer than the others wait before they give a node up."""
PATIENCE_S = 60.0


class Killing:
    """Kills a node every so many seconds. It is back at once, or after the others have given it up, in turns."""

    def __init__(self, nodes: Nodes, groups: list[Group], noise: Random) -> None:
        self._nodes, self._groups, self._noise = nodes, groups, noise
        self.kills = self.of_coordinators = self.given_up = 0
        self.ended_by_themselves = 0

    def strike(self) -> None:
        """Kill one; each second time a group's coordinator."""
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
            told = admin.describe_consumer_groups([name], request_timeout=10)[name].result(20).coordinator
        except KafkaException:
            return None
        return self._nodes.ports.index(told.port)


def killed_nodes(
    stack: Stack, folder: Path, *, minutes: float, every: float, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Kill a node every so many seconds for so long; then let the groups read on to the end, and judge."""
    records = int(PER_SECOND * MEMBERS * 60 * minutes)
    scene = Scene(stack, partitions=PARTITIONS, records=records, size=RECORD_BYTES, serve={"refresh": "500ms"})
    over = threading.Event()
    grown = 0

    def grow() -> None:
        nonlocal grown
        while not over.wait(GROWN_EVERY_S):
            scene.grow(GROWN_BY)
            grown += 1

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
        for each in groups:
            for _ in range(MEMBERS):
                each.join()
        for each in groups:
            if each.settles(PATIENCE_S) is None:
                wrong.append(f"{each.name}: partitions weren't shared in the beginning")
        growing = threading.Thread(target=grow)
        growing.start()
        ending.callback(growing.join)
        ending.callback(over.set)
        killing = Killing(nodes, groups, Random(seed))
        until = time.monotonic() + 60 * minutes
        while (due := time.monotonic() + every) < until + 1:
            killing.strike()
            say(f"{killing.kills} kills, {[sum(each.reached().values()) for each in groups]} read of {scene.ends}")
            time.sleep(max(0.0, due - time.monotonic()))
        over.set()
        growing.join()
        for each in groups:
            each.drain()
        for each in groups:
            if each.settles(PATIENCE_S) is None:
                wrong.append(f"{each.name}: partitions weren't shared in the end")
            if not each.has_reached(scene.ends, 2 * PATIENCE_S):
                wrong.append(f"{each.name}: the end was never reached")
        told = [
            {"protocol": name, **each.judged(scene.ends).summary} for name, each in zip(PROTOCOLS, groups, strict=True)
        ]
    return {
        "nodes": NODES,
        "minutes": minutes,
        "kills": killing.kills,
        "of_coordinators": killing.of_coordinators,
        "away_until_given_up": killing.given_up,
        "ended_by_themselves": killing.ended_by_themselves,
        "commits_of_the_archive": grown,
        "records": sum(scene.ends.values()),
        **{key: sum(each[key] for each in told) for key in ("delivered", "again", "commits", "commits_refused")},
        "longest_silence_s": max(each["longest_silence_s"] for each in told),
        "wrong": len(wrong) + killing.ended_by_themselves + sum(len(each["wrong"]) for each in told),
        "groups": told,
        "troubles": wrong,
    }
