"""Copies a trail into a local folder, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from archiver.audit.folder import StoredLine, TrailFolder
from archiver.errors import ConfigError


def export(trail: TrailFolder, target: Path) -> int:
    """Copy the trail unchecked; return the number of entries. Raises ConfigError if the folder isn't empty.

    A file begins after each missing number, so entries keep their position.
    """
    if target.exists() and any(target.iterdir()):
        raise ConfigError("The folder isn't empty: name another one", folder=str(target))
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    # The position less the count is the same for all entries of a run.
    for _, run in groupby(enumerate(_once(trail)), key=lambda numbered: numbered[1].place - numbered[0]):
        count += _write(target, (line for _, line in run))
    for path, data in trail.checkpoints():
        (target / path.rpartition("/")[2]).write_bytes(data)
    return count


def _once(trail: TrailFolder) -> Iterator[StoredLine]:
    seen = 0
    for line in trail.lines():
        if line.place > seen:
            seen = line.place
            yield line


def _write(target: Path, run: Iterator[StoredLine]) -> int:
    part = target / "entries.part"
    first = last = 0
    digest = sha256()
    with part.open("wb") as file:
        for line in run:
            first, last = first or line.place, line.place
            digest.update(line.data + b"\n")
            file.write(line.data + b"\n")
    part.rename(target / f"entries-{first:010d}-{last:010d}-{digest.hexdigest()[:16]}.jsonl")
    return last - first + 1
