"""An archive of version 0.1 on today's servers."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from tests.support.archive.kept_archive import Fate, KeptArchive
from tests.support.archive.readers import Seen
from tests.support.archive.restored_archive import RestoredArchive
from tests.support.archive.two_topics import Ran
from tests.support.engine.inline_engine import InlineEngine

KEPT = KeptArchive.of_version("0.1")
TOPICS = ("customers", "events", "orders", "payments", "shipments")


@dataclass(slots=True, kw_only=True)
class UpgradedArchive:
    """Records of fates `present`, except `gone`, must be replayed."""

    archive: RestoredArchive
    config: Path
    present: set[Fate]
    gone: list[Callable[[str, Seen], bool]] = field(default_factory=list)

    def run(self, *words: str, config: Path | None = None) -> Ran:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("archiver.engine.choice.start_spark", lambda *_, **__: nullcontext(InlineEngine()))
            done = CliRunner().invoke(app, [*words, "--json", "--config", str(config or self.config)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Ran(code=done.exit_code, text=done.stdout or done.stderr)

    def expected(self, topic: str) -> list[Seen]:
        return [
            record.seen
            for record in KEPT.records()
            if record.topic == topic
            and record.fate in self.present
            and not any(is_gone(topic, record.seen) for is_gone in self.gone)
        ]

    def check(self, *topics: str, config: Path | None = None) -> dict[str, bool]:
        """Whether `archiver replay` writes exactly the expected records, and `find` finds keys."""
        return {
            topic: self._replayed(topic, config) == self.expected(topic) and self._finds_keys(topic, config)
            for topic in topics or TOPICS
        }

    def _finds_keys(self, topic: str, config: Path | None) -> bool:
        keys = sorted({record.seen.key for record in KEPT.records() if record.topic == topic and record.seen.key})[:3]
        listed = ", ".join("0x" + key.hex() for key in keys)
        done = self.run("find", topic, "--where", f"key in ({listed})", "--format", "jsonl", config=config)
        assert done.code == 0, done.text
        places = sorted((line["partition"], line["offset"]) for line in map(json.loads, done.text.splitlines()))
        return places == [(seen.partition, seen.offset) for seen in self.expected(topic) if seen.key in keys]

    def _replayed(self, topic: str, config: Path | None) -> list[Seen]:
        file = self.config.with_name(f"{topic}.jsonl")
        done = self.run("replay", topic, "-o", str(file), config=config)
        assert done.code == 0, done.text
        return [_seen(json.loads(line)) for line in file.read_bytes().splitlines()]


def _seen(line: dict[str, Any]) -> Seen:
    return Seen(
        line["partition"],
        line["offset"],
        line["timestamp_type"] + 1,  # Kafka counts from 0, its client from 1
        line["timestamp"],
        _bytes(line["key"]),
        _bytes(line["value"]),
        tuple((name, _bytes(value)) for name, value in line["headers"]),
    )


def _bytes(value: str | dict[str, str] | None) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case _:
            return b64decode(value["base64"])
