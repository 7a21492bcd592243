"""A process that takes turns with others, with its checkout's code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from archiving.resident import watched

MARK = "@"
BENCH = Path(__file__).resolve().parent.parent
HERE = BENCH.parent


def answer(found: dict[str, Any]) -> None:
    sys.stdout.write(f"\n{MARK}{json.dumps(found)}\n")
    sys.stdout.flush()


class Player:
    """Works once for each line on its input, and answers with JSON."""

    def __init__(self, command: Sequence[str], *, checkout: Path = HERE, bench: Path = BENCH) -> None:
        paths = os.pathsep.join(map(str, (checkout, bench)))
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": paths},
        )
        self.began = self._answer()

    def turn(self, line: str = "turn") -> dict[str, Any]:
        assert self._process.stdin is not None
        with watched(self._process.pid) as peaks:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            reply = self._answer()
        return reply | {"memory": peaks.proportional, "memory_split": peaks.split}

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(MARK):
                reply: dict[str, Any] = json.loads(line.removeprefix(MARK))
                return reply
        raise RuntimeError(f"a side ended with {self._process.wait()}")
