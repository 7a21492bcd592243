"""The offset map of a transfer, as a file and for look-ups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from archiver.replay.output_file import OutputFile
from archiver.republish.offset_runs import Runs
from archiver.republish.progress_log import Begun, Entry, MovedUpTo


def write_offset_map(entries: Iterable[Entry], output: OutputFile) -> int:
    """Write a JSON line for each run of consecutive offsets. Return the number of records.

        {"partition":0,"source":1200,"target":0,"count":5000}

    Source offset 1200 has become target offset 0, and so on for 5,000 records.
    """
    records = 0
    pending: dict[int, Runs] = {}
    for entry in entries:
        if not isinstance(entry, MovedUpTo):
            continue
        runs = Runs.joined([part for part in (pending.pop(entry.partition, None), entry.runs) if part is not None])
        last = max(0, len(runs) - 1)  # the next entry may continue the last run
        pending[entry.partition] = Runs(runs.sources[last:], runs.targets[last:], runs.counts[last:])
        done = Runs(runs.sources[:last], runs.targets[:last], runs.counts[:last])
        output.writelines(_lines(entry.partition, done))
        records += entry.runs.records
    for partition, runs in sorted(pending.items()):
        output.writelines(_lines(partition, runs))
    return records


def _lines(partition: int, runs: Runs) -> Iterator[bytes]:
    for source, target, count in runs.to_json():
        line = {"partition": partition, "source": source, "target": target, "count": count}
        yield json.dumps(line, separators=(",", ":")).encode() + b"\n"


@dataclass(slots=True)
class PlacesInTarget:
    """Looks up `wanted` source offsets, by partition, in a transfer's entries.

    `ends` are the target's before the entries are read.
    """

    wanted: Mapping[int, frozenset[int]]
    ends: Mapping[int, int]
    _found: dict[tuple[int, int], int] = field(default_factory=dict)
    _reached: dict[int, int] = field(default_factory=dict)
    _first: dict[int, int] = field(default_factory=dict)
    _next: dict[int, int] = field(default_factory=dict)

    def read(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            match entry:
                case Begun():
                    self._reached[entry.partition] = entry.offset
                case MovedUpTo():
                    self._look_up(entry)

    def _look_up(self, entry: MovedUpTo) -> None:
        partition, runs = entry.partition, entry.runs
        for offset in self.wanted.get(partition, frozenset()):
            if (partition, offset) not in self._found:
                position = runs.place_of(offset)
                if position is not None:
                    self._found[partition, offset] = position
        if len(runs):
            self._first.setdefault(partition, int(runs.targets[0]))
            self._next[partition] = int(runs.targets[-1] + runs.counts[-1])
        self._reached[partition] = entry.next_offset

    def of(self, partition: int, offset: int) -> int | None:
        """The target's position for a reader at `offset`; None if it isn't reached yet."""
        if partition not in self._reached or offset > self._reached[partition]:
            return None
        position = self._found.get((partition, offset))
        return self._next.get(partition, self.ends[partition]) if position is None else position

    def first(self, partition: int) -> int:
        return self._first.get(partition, self.ends[partition])
