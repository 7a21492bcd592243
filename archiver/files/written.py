"""Ended ranges and their files, for the uploader."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass

from archiver.storage.spool_file import SpoolFile
from catalog.model import DataFileInfo, TranslatedRange


@dataclass(frozen=True, slots=True)
class SpooledFile:
    """`kept_as` is its name if storage denies it for good."""

    info: DataFileInfo
    local: SpoolFile
    kept_as: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRange:
    """`files` finishes its files as they are taken."""

    id: str
    topic: str
    partition: int
    start_offset: int
    end_offset: int
    schema_version: int
    files: Generator[SpooledFile]

    def translated(self, files: tuple[DataFileInfo, ...]) -> TranslatedRange:
        """Sources with leader epochs add the epoch."""
        return TranslatedRange(
            id=self.id,
            topic=self.topic,
            partition=self.partition,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            schema_version=self.schema_version,
            files=files,
            created_ms=time.time_ns() // 1_000_000,
        )
