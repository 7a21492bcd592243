"""How long commands take that have little to do, beside those of another checkout.

Recipe: `python bench/start.py [--beside DIR] [--rounds 7] [--stack DIR] [--json FILE] [--short]`, with the machine left
alone. On an embedded stack, which is started and stopped unless one is named, each side has a topic of its own with
three records, and a registry of its own. The sides take turns, each command in a new process: `archive` is `archiver
archive --once` on one new record, `status` shows the topic, and `replay` prints three records. `--beside` is a checkout
of another commit whose kernels are compiled. With `--short` the record is archived in the first round only. Results are
the medians of the rounds, with the least and the most; CPU is user and system time of the command and all its
processes. There is a pause before each command: Java may work on for a moment after one. A first round isn't counted:
it fills caches.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rich.console import Console
from rich.table import Table

from archiver.local import LocalStack
from tests.support.servers.stack import Stack

HERE = Path(__file__).parent.parent
RECORDS = 3
PAUSE_SECONDS = 2.0


@dataclass(slots=True)
class StartedCheckout:
    name: str
    checkout: Path
    config: Path
    topic: str
    took: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def run(self, *command: str) -> tuple[float, float]:
        environment = {**os.environ, "PYTHONPATH": str(self.checkout)}
        time.sleep(PAUSE_SECONDS)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "archiver", *command, "--config", str(self.config)],
            cwd=self.checkout,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"{self.name}: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(stack: Stack, sides: Sequence[StartedCheckout], rounds: int, *, short: bool) -> None:
    """If `short`, only with commands that start no Java."""
    for side in sides:
        stack.produce(side.topic, *({"value": b"%d" % number} for number in range(RECORDS)))
    for number in range(rounds + 1):
        for side in sides:
            if not (short and number):
                stack.produce(side.topic, {"value": b"new"})
            commands = {
                "archive": ("archive", "--once"),
                "status": ("status",),
                "replay": ("replay", side.topic, "--to", str(RECORDS)),
            }
            if short and number:
                del commands["archive"]
            for name, command in commands.items():
                took = side.run(*command)
                if number:
                    side.took.setdefault(name, []).append(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stack", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        local = LocalStack(options.stack or folder / "stack")
        if options.stack is None:
            closing.callback(local.down)
        stack = Stack(local.up(), folder)
        checkouts = {"here": HERE} | ({} if options.beside is None else {"beside": options.beside.resolve()})
        sides = []
        for name, checkout in checkouts.items():
            topic = stack.topic()
            sides.append(StartedCheckout(name, checkout, stack.config({topic: {}}), topic))
        measured(stack, sides, options.rounds, short=options.short)
    table = Table("command", "side", "seconds", "CPU seconds")
    for name in sides[0].took:
        for side in sides:
            columns = zip(*side.took[name], strict=True)
            table.add_row(
                name, side.name, *(f"{statistics.median(c):.2f} ({min(c):.2f} to {max(c):.2f})" for c in columns)
            )
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({side.name: side.took for side in sides}, indent=1))


if __name__ == "__main__":
    main()
