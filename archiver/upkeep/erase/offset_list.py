"""Records named by partition and offset: as options (`0:1200-1209`) or in a file."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from archiver.errors import ConfigError
from catalog.ranges.spans import joined

_TEXT: Final = re.compile(r"(\d+):(\d+)(?:-(\d+))?", re.ASCII)
_LINE: Final = re.compile(r"(\d+)\s*[,;\t ]\s*(\d+)", re.ASCII)
_HEADING: Final = re.compile(r"partition\s*[,;\t ]\s*offset", re.IGNORECASE)
_END: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class OffsetList:
    """Half-open, joined and sorted spans by partition."""

    spans: Mapping[int, tuple[tuple[int, int], ...]]

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Self:
        """Parse `PARTITION:OFFSET` or `PARTITION:FIRST-LAST`, both inclusive. Raises ConfigError."""
        return cls._of(_parsed(text) for text in texts)

    @classmethod
    def read(cls, lines: Iterable[str], *, topic: str, name: str) -> Self:
        """Read `PARTITION,OFFSET` lines, or JSON of `archiver replay`.

        Skips a heading and blank lines. Raises ConfigError, naming the line, also for JSON with another topic.
        """
        try:
            return cls._of(_listed(lines, topic, name))
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"the list of offsets can't be read: write it in UTF-8 ({error})", option="--offsets-file", file=name
            ) from error

    @classmethod
    def of_file(cls, path: Path, *, topic: str) -> Self:
        """Raise ConfigError, also if the file can't be read."""
        try:
            with path.open(encoding="utf-8") as lines:
                return cls.read(lines, topic=topic, name=str(path))
        except OSError as error:
            raise ConfigError(f"the list of offsets can't be read: {error}", option="--offsets-file") from error

    @classmethod
    def _of(cls, spans: Iterable[tuple[int, int, int]]) -> Self:
        by_partition: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for partition, start, end in spans:
            by_partition[partition].append((start, end))
        return cls({partition: tuple(joined(ranges)) for partition, ranges in sorted(by_partition.items())})

    def joined_with(self, other: OffsetList) -> OffsetList:
        return self._of(
            (partition, start, end)
            for part in (self, other)
            for partition, spans in part.spans.items()
            for start, end in spans
        )

    def within(self, ends: Mapping[int, int]) -> dict[int, tuple[tuple[int, int], ...]]:
        clipped = {
            partition: tuple((start, min(end, ends[partition])) for start, end in spans if start < ends[partition])
            for partition, spans in self.spans.items()
            if partition in ends
        }
        return {partition: spans for partition, spans in clipped.items() if spans}

    @property
    def text(self) -> str:
        """In option syntax, canonical for equal offsets."""
        return ",".join(
            f"{partition}:{start}-{end - 1}" for partition, spans in self.spans.items() for start, end in spans
        )


def _parsed(text: str) -> tuple[int, int, int]:
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise ConfigError("--offsets is PARTITION:OFFSET or PARTITION:FIRST-LAST, such as 0:1200-1209", found=text)
    first, last = int(match[2]), int(match[3] or match[2])
    if last < first or last >= _END:
        raise ConfigError("--offsets: the last offset comes before the first, or there is no such offset", found=text)
    return int(match[1]), first, last + 1


def _listed(lines: Iterable[str], topic: str, name: str) -> Iterator[tuple[int, int, int]]:
    for number, line in enumerate(lines, start=1):
        text = (line.removeprefix("\ufeff") if number == 1 else line).strip()
        if not text or (number == 1 and _HEADING.fullmatch(text)):
            continue
        partition, offset, named = _of_json(text) if text.startswith("{") else (*_of_columns(text), None)
        if named is not None and named != topic:
            raise ConfigError(
                "the list names a record of another topic: a list has the records of one topic. For several topics, "
                "name a list for each in a plan (--plan)",
                file=name,
                line=number,
                topic=topic,
                found=named,
            )
        if partition < 0 or not 0 <= offset < _END:
            raise ConfigError(
                "--offsets-file has a line for each record: PARTITION,OFFSET, or JSON with `partition` and `offset`",
                file=name,
                line=number,
            )
        yield partition, offset, offset + 1


def _of_columns(text: str) -> tuple[int, int]:
    match = _LINE.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else (-1, -1)


def _of_json(text: str) -> tuple[int, int, object]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return -1, -1, None
    numbers = tuple(record.get(key) for key in ("partition", "offset"))
    partition, offset = (number if type(number) is int else -1 for number in numbers)
    return partition, offset, record.get("topic")
