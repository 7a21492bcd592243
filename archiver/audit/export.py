"""Copy a trail into a folder of this machine: the same bytes, many entries in one file, and the checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from archiver.audit.folder import StoredLine, TrailFolder
from archiver.errors import ConfigError


def export(trail: TrailFolder, target: Path) -> int:
    """Copy the trail; return the number of entries. ConfigError where the folder has files already.

    Entries are written without a check. Where numbers are missing a new file begins, so each keeps its place.
    """
    if target.exists() and any(target.iterdir()):
        raise ConfigError("The folder isn't empty: name another one", folder=str(target))
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    # The place less the count so far is the same for all entries of a run.
    for _, run in groupby(enumerate(_once(trail)), key=lambda one: one[1].place - one[0]):
        count += _write(target, (line for _, line in run))
    for path, data in trail.checkpoints():
        (target / path.rpartition("/")[2]).write_bytes(data)
    return count


def _once(trail: TrailFolder) -> Iterator[StoredLine]:
    """Each entry once, by number."""
    seen = 0
    for one in trail.lines():
        if one.place > seen:
            seen = one.place
            yield one


def _write(target: Path, run: Iterator[StoredLine]) -> int:
    part = target / "entries.part"
    first = last = 0
    digest = sha256()
    with part.open("wb") as file:
        for one in run:
            first, last = first or one.place, one.place
            digest.update(one.data + b"\n")
            file.write(one.data + b"\n")
    part.rename(target / f"entries-{first:010d}-{last:010d}-{digest.hexdigest()[:16]}.jsonl")
    return last - first + 1
