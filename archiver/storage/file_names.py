"""Names of data files: topic, partition, first offset and ULID."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Self

from ulid import ULID

_NAME: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})-((?P<partition>\d{1,10})-(?P<start>\d{20})|reprocessed)"
    r"-(?P<ulid>[0-7][0-9a-hjkmnp-tv-z]{25})\.(?P<extension>[a-z]+)"
)

LONGEST_TOPIC: Final = 100
"""In bytes. Many file systems allow names of at most 255 bytes, and a topic's name may have 249."""

_HASH: Final = 12


def topic_part(topic: str) -> str:
    """Cut names end with part of their hash."""
    if len(topic.encode()) <= LONGEST_TOPIC:
        return topic
    return f"{topic[: LONGEST_TOPIC - _HASH - 1]}-{sha256(topic.encode()).hexdigest()[:_HASH]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileName:
    """Partition and start offset are None for a file of several ranges. Older archivers didn't cut `topic`."""

    topic: str
    ulid: str
    extension: str
    partition: int | None = None
    start_offset: int | None = None

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """None if it isn't an archived file's name."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(
            topic=match["topic"],
            ulid=match["ulid"].upper(),
            extension=match["extension"],
            partition=None if match["partition"] is None else int(match["partition"]),
            start_offset=None if match["start"] is None else int(match["start"]),
        )

    def __str__(self) -> str:
        position = "reprocessed" if self.partition is None else f"{self.partition}-{self.start_offset:020d}"
        return f"{topic_part(self.topic)}-{position}-{self.ulid.lower()}.{self.extension}"

    def is_of(self, topic: str) -> bool:
        return self.topic in {topic, topic_part(topic)}

    @property
    def created_ms(self) -> int:
        """In ms since 1970, by the writer's clock."""
        return int(ULID.from_str(self.ulid).milliseconds)
