"""Names of data files: which topic, partition and first offset a file is of, and its ULID, read and written alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from ulid import ULID

_NAME: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})-((?P<partition>\d{1,10})-(?P<start>\d{20})|reprocessed)"
    r"-(?P<ulid>[0-7][0-9a-hjkmnp-tv-z]{25})\.(?P<extension>[a-z]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileName:
    """A data file's name. `ulid` is in capitals; files whose rows have no one origin have no partition and start."""

    topic: str
    ulid: str
    extension: str
    partition: int | None = None
    start_offset: int | None = None

    @classmethod
    def of(cls, name: str) -> Self | None:
        """Read a file name; None where it isn't one of ours."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        return cls(
            topic=found["topic"],
            ulid=found["ulid"].upper(),
            extension=found["extension"],
            partition=None if found["partition"] is None else int(found["partition"]),
            start_offset=None if found["start"] is None else int(found["start"]),
        )

    def __str__(self) -> str:
        place = "reprocessed" if self.partition is None else f"{self.partition}-{self.start_offset:020d}"
        return f"{self.topic}-{place}-{self.ulid.lower()}.{self.extension}"

    @property
    def created_ms(self) -> int:
        """When the name was given, in ms since 1970, by the clock of the machine that wrote the file."""
        return int(ULID.from_str(self.ulid).milliseconds)
