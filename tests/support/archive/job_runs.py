"""Runs of the archive job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.ingest.topic.acceptance import AcceptedLosses
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique


def run(config: Path, *topics: str, engine: Engine | None = None, accept_raw: bool = False) -> JobReport:
    return ArchiveJob(
        load_config(config), topics, engine=engine or InlineEngine(), accepts=AcceptedLosses(raw=accept_raw)
    ).run_once()


def archive_once(config: Path, *topics: str, engine: Engine | None = None, accept_raw: bool = False) -> JobReport:
    report = run(config, *topics, engine=engine, accept_raw=accept_raw)
    assert report.succeeded, report
    return report


def without_registry(stack: Stack, config: Path, *, with_journal: bool) -> Path:
    settings = load_config(config)
    text = config.read_text().replace(json.dumps(settings.registry.dsn), json.dumps(stack.database()))
    if not with_journal:
        text = text.replace(json.dumps(settings.archive.journal), json.dumps(f"s3://{stack.bucket}/{unique('none')}"))
    path = config.with_name("rebuilt.toml")
    path.write_text(text)
    return path


def read(stack: Stack, config: Path, topic: str) -> pa.Table:
    return stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow()


def places(table: pa.Table) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in table.column("kafka").to_pylist())


def values(table: pa.Table) -> list[bytes]:
    return sorted(row["__raw__"] for row in table.column("val").to_pylist())


def numbered(numbers: Sequence[int], partitions: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [{"value": b"%d" % number, "partition": number % partitions, **more} for number in numbers]


def schema(folder: Path, fields: str) -> dict[str, str]:
    path = folder / "event.proto"
    path.write_text(f'syntax = "proto3"; package shop; message Event {{ {fields} }}')
    return {"format": "protobuf", "message": "shop.Event", "proto": str(path)}
