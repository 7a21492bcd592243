"""`python -m tests.fault.siege`: a consumer group beside hostile clients; exit code 1 if it suffers.

Attackers take processor time wherever they send. So the group's pace while they attack its server is compared with its
pace while they attack a second, idle server, in turns.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from archiver.local import LocalStack
from tests.fault.serving.scene import Scene
from tests.fault.serving.slow_consumers import Memory
from tests.fault.siege.attacks import attacks
from tests.support.servers.serve_nodes import Nodes
from tests.support.servers.served_lake import Wire, request
from tests.support.servers.stack import Stack, to_toml

MEMBERS = 2
PARTITIONS = 4
RECORDS = 400_000
RECORD_BYTES = 200
PHASE_S = 15.0
SETTLED_S = 3.0
LEAST_RATIO = 0.8
MOST_WAIT_S = 0.5
MOST_BYTES = 1 << 30
HERE, ELSEWHERE = "group's server", "idle server"


@dataclass(frozen=True, slots=True)
class Noted:
    at: float
    count: int
    missing: int
    repeated: int

    @classmethod
    def parse(cls, line: str) -> Noted:
        at, *counts = map(int, line.split())
        return cls(at / 1e9, *counts)


class Probe:
    def __init__(self, port: int, topic: str) -> None:
        self._port, self._topic = port, topic
        self.waits: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        metadata = request(3, 9, name=self._topic, allow_auto_topic_creation=False)
        with Wire(self._port, address="127.0.0.3") as wire:
            while not self._over.wait(0.1):
                began = time.monotonic()
                wire.ask(metadata)
                self.waits.append((began, time.monotonic() - began))


def pace(logs: Mapping[Path, list[Noted]], phases: list[tuple[str, float, float]], phase: str) -> float:
    records = seconds = 0.0
    for name, first, last in phases:
        if name != phase:
            continue
        seconds += last - first
        for log in logs.values():
            within = [noted for noted in log if first <= noted.at <= last]
            if len(within) > 1:
                records += (within[-1].count - within[0].count) * (last - first) / (within[-1].at - within[0].at)
    return records / seconds if seconds else 0.0


@contextmanager
def members(bootstrap: str, scene: Scene, folder: Path) -> Iterator[list[Path]]:
    logs, running = [], []
    try:
        for number in range(MEMBERS):
            logs.append(folder / f"member-{number}.log")
            given = {"bootstrap": bootstrap, "topic": scene.topic, "group": "besieged", "ends": scene.ends}
            given |= {"log": str(logs[-1])}
            program = [sys.executable, str(Path(__file__).with_name("member.py")), json.dumps(given)]
            running.append(subprocess.Popen(program))
        yield logs
        for member in running:
            if member.poll() is not None:
                raise RuntimeError("a member of the group ended by itself")
    finally:
        for member in running:
            member.kill()
            member.wait()


@contextmanager
def attacked(port: int, kinds: Path, connections: int, seed: int) -> Iterator[Counter[str]]:
    command = [sys.executable, "-m", "tests.fault.siege.attackers", str(port), str(kinds), str(connections), str(seed)]
    sent: Counter[str] = Counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"attacking\n"
        yield sent
        output, _ = process.communicate(timeout=30)
        sent.update(json.loads(output))


def second_config(config: Path, path: Path) -> Path:
    document = tomllib.loads(config.read_text("utf-8"))
    document["serve"]["cluster_id"] = "idle"
    path.write_text(to_toml(document), "utf-8")
    path.chmod(0o600)
    return path


def siege(
    stack: Stack, folder: Path, *, minutes: float, connections: int, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    serve = {"cluster_id": "siege", "refresh": "1s"}
    scene = Scene(stack, partitions=PARTITIONS, records=RECORDS, size=RECORD_BYTES, serve=serve)
    idle = second_config(scene.config, folder / "idle.toml")
    phases: list[tuple[str, float, float]] = []
    sent: dict[str, Counter[str]] = {HERE: Counter(), ELSEWHERE: Counter()}
    kinds = folder / "attacks.pickle"
    kinds.write_bytes(pickle.dumps(attacks(scene.topic)))
    with ExitStack() as parts:
        besieged = parts.enter_context(Nodes(scene.config, 1, log=folder / "server.log"))
        spare = parts.enter_context(Nodes(idle, 1, log=folder / "idle.log"))
        memory = parts.enter_context(Memory(besieged.pid(0)))
        logs = parts.enter_context(members(besieged.bootstrap, scene, folder))
        probe = parts.enter_context(Probe(besieged.ports[0], scene.topic))
        time.sleep(4 * SETTLED_S)
        until = time.monotonic() + minutes * 60
        for number in range(1_000_000):
            name, nodes = ((HERE, besieged), (ELSEWHERE, spare))[number % 2]
            with attacked(nodes.ports[0], kinds, connections, seed + number // 2) as counts:
                time.sleep(SETTLED_S)
                began = time.monotonic()
                time.sleep(PHASE_S)
                phases.append((name, began, time.monotonic()))
            sent[name] += counts
            time.sleep(SETTLED_S)
            noted = {log: [Noted.parse(line) for line in log.read_text("ascii").splitlines()] for log in logs}
            say(f"{name}: {pace(noted, phases[-1:], name):,.0f} records/s")
            if time.monotonic() > until and number % 2:
                break
    return judged(noted, phases, probe, memory) | {"sent": sent}


def judged(
    noted: Mapping[Path, list[Noted]], phases: list[tuple[str, float, float]], probe: Probe, memory: Memory
) -> dict[str, Any]:
    paces = {name: pace(noted, phases, name) for name in (HERE, ELSEWHERE)}
    ratio = paces[HERE] / paces[ELSEWHERE]
    lasts = [log[-1] for log in noted.values()]
    waits = {name: _waits(probe, phases, name) for name in (HERE, ELSEWHERE)}
    most_bytes = max(size for _, size in memory.samples)
    missing = sum(last.missing for last in lasts)
    wrong = [
        ratio < LEAST_RATIO,
        missing > 0,
        waits[HERE]["p99"] > MOST_WAIT_S,
        most_bytes > MOST_BYTES,
    ]
    return {
        "wrong": sum(wrong),
        "phases": len(phases),
        "seconds": round(sum(last - first for _, first, last in phases)),
        "records_per_second": {name: round(value) for name, value in paces.items()},
        "ratio": round(ratio, 3),
        "records": sum(last.count for last in lasts),
        "missing": missing,
        "repeated": sum(last.repeated for last in lasts),
        "metadata_seconds": waits,
        "most_resident_mib": round(most_bytes / (1 << 20)),
    }


def _waits(probe: Probe, phases: list[tuple[str, float, float]], phase: str) -> dict[str, float]:
    seconds = sorted(
        wait for at, wait in probe.waits for name, first, last in phases if name == phase and first <= at <= last
    )
    return {"p50": seconds[len(seconds) // 2], "p99": seconds[len(seconds) * 99 // 100], "most": seconds[-1]}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault.siege", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the siege takes, about")
    parser.add_argument("--connections", type=int, default=50, help="hostile connections")
    parser.add_argument("--seed", type=int, default=1, help="which attacks are made when")
    parser.add_argument("--out", type=Path, default=Path("build/siege.json"), help="a file for the numbers")
    given = parser.parse_args(arguments)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"siege {time.monotonic() - began:5.0f} s: {line}", flush=True)  # noqa: T201 - a command's own output

    with tempfile.TemporaryDirectory(prefix="siege-") as scratch:
        local = LocalStack(Path(scratch) / "stack")
        try:
            stack = Stack(local.up(), Path(scratch))
            result = siege(
                stack,
                Path(scratch),
                minutes=given.minutes,
                connections=given.connections,
                seed=given.seed,
                say=say,
            )
        finally:
            local.down()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    sys.stdout.write(json.dumps(result) + "\n")
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
