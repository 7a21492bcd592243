"""A member's journal and the state it proves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def lines_of(path: Path) -> Iterator[list[Any]]:
    if path.exists():
        for line in path.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)


@dataclass(slots=True)
class Journal:
    path: Path
    has: set[int] = field(default_factory=set)
    """The partitions that the member takes for its own."""
    last_got: int = 0
    """When it last got a record."""
    delivered: int = 0
    reached: dict[int, int] = field(default_factory=dict)
    """The highest offset got of each partition."""
    commits_refused: int = 0
    errors: list[str] = field(default_factory=list)
    is_ended: bool = False
    _read: int = 0

    def read_on(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            whole, lines, _ = file.read().rpartition(b"\n")
        if lines:
            self._read += len(whole) + 1
            for line in whole.split(b"\n"):
                self._take(json.loads(line))

    def _take(self, line: list[Any]) -> None:
        match line:
            case ["assigned", _, places]:
                self.has |= set(places)
            case ["revoked" | "lost", _, places]:
                self.has -= set(places)
            case ["got", at, partition, first, last]:
                self.last_got = at
                self.delivered += last - first + 1
                self.reached[partition] = max(last, self.reached.get(partition, -1))
            case ["refused", _, _, name]:
                self.commits_refused += 1
                self.errors.append(name)
            case ["error" | "wrong", _, *more]:
                self.errors.append(str(more))
            case ["ended", _]:
                self.has.clear()
                self.is_ended = True
