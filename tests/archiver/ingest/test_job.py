"""Topics of a job, and unmatched patterns."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyiceberg.schema import Schema

from archiver.audit.checkpoints import load_key
from archiver.audit.signing import SigningKey
from archiver.config import load_config
from archiver.errors import ConfigError
from archiver.ingest.events import TableNoted
from archiver.ingest.job import ArchiveJob
from schema_mapping import LedgerState, assign
from tests.support.schemas.proto_text import compile_text

CONFIG = (
    '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
    '[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n'
)


def configured(job: ArchiveJob, brokers: Any, *, waits: bool) -> Any:
    return job._configured(brokers, waits=waits)


def test_repeating_job_reports_an_unmatched_pattern_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(CONFIG + '[topics.orders]\n[topics."orders*"]\n[topics."order.*"]\n[topics."late.*"]\n')
    existing = ["orders"]
    brokers = cast("Any", SimpleNamespace(topics=lambda: list(existing)))
    job = ArchiveJob(load_config(path, {}), engine=cast("Any", None))

    def look(*, waits: bool) -> list[str]:
        caplog.clear()
        configured(job, brokers, waits=waits)
        return caplog.messages

    assert look(waits=False) == []
    message = "no topic of the cluster matches the section [topics.%s] yet"
    assert look(waits=True) == [message % '"late.*"', message % '"order.*"']
    assert look(waits=True) == []
    existing.append("late.one")
    assert look(waits=True) == []


def test_topics_of_one_table_do_not_stop_the_job(tmp_path: Path) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(CONFIG + '[topics."a[._]b"]\n')
    brokers = cast("Any", SimpleNamespace(topics=lambda: ["a.b", "a_b"]))
    job = ArchiveJob(load_config(path, {}), engine=cast("Any", None))
    assert [(topic.name, topic.table) for topic in configured(job, brokers, waits=False)] == [
        ("a.b", "kafka.a_b"),
        ("a_b", "kafka.a_b"),
    ]


def test_a_pattern_of_internal_topics_names_the_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(CONFIG + '[topics."__*"]\n[topics.orders]\n')
    brokers = cast("Any", SimpleNamespace(topics=lambda: ["orders"]))
    configured(ArchiveJob(load_config(path, {}), engine=cast("Any", None)), brokers, waits=True)
    (message,) = caplog.messages
    assert message.startswith('no topic of the cluster matches the section [topics."__*"] yet; patterns leave out')
    assert message.endswith("Kafka's internal topics: name them, as in [topics.__consumer_offsets]")
    path.write_text(CONFIG + '[topics."__*"]\n')
    with pytest.raises(ConfigError, match=r"internal topics: name them, as in \[topics\.__consumer_offsets\]"):
        configured(ArchiveJob(load_config(path, {}), engine=cast("Any", None)), brokers, waits=False)


def test_the_first_run_notes_limits_and_a_catalog_that_rewrites(tmp_path: Path) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(CONFIG.replace("http://127.0.0.1:1", "https://s3tables.eu-west-1.amazonaws.com/iceberg", 1))
    lines = "".join(f"int32 f{number} = {number};" for number in range(1, 1_501))
    wide = assign(LedgerState(), value=compile_text(f'syntax = "proto3"; package t; message M {{ {lines} }}'))
    narrow = assign(LedgerState(), value=compile_text('syntax = "proto3"; package t; message M { int32 a = 1; }'))
    events: list[object] = []
    job = ArchiveJob(load_config(path, {}), observer=events.append, engine=cast("Any", None))

    def notes(schema: Schema, *, is_first: bool) -> list[str]:
        events.clear()
        opened = SimpleNamespace(topic=SimpleNamespace(topic="orders"), change=SimpleNamespace(schema=schema))
        job._note_table(cast("Any", opened), is_first=is_first)
        return [note for event in events if isinstance(event, TableNoted) for note in event.notes]

    limit, rewrites = notes(wide.iceberg_schema, is_first=True)
    assert "Snowflake takes at most 1,000 sub-columns of a structured column, and `val` has 1,505" in limit
    assert "max_columns" in limit
    assert rewrites.startswith("S3 Tables compacts files")
    assert len(notes(wide.iceberg_schema, is_first=False)) == 1
    assert len(notes(narrow.iceberg_schema, is_first=True)) == 1
    assert notes(narrow.iceberg_schema, is_first=False) == []


def test_signing_key_is_read_first_and_kept_for_the_run(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    path = tmp_path / "archiver.toml"
    path.write_text(CONFIG + f'[audit]\nsigning_key = "{key}"\n[topics.orders]\n')
    job = ArchiveJob(load_config(path, {}), engine=cast("Any", None))
    with pytest.raises(ConfigError, match=r"audit\.signing_key"):
        job.check()
    made = SigningKey.generate(key, tmp_path / "public.pem")
    job.check()
    key.unlink()
    assert load_key(key).id == made.id, "what becomes of the file during a run stops no topic"
