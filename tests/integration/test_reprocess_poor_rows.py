"""`archiver reprocess --unrecognized` and `--all`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory

from archiver.config import load_config
from archiver.storage.parquet.reader import ParquetSegmentReader
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.reprocess.report import ReprocessReport
from archiver.upkeep.reprocess.row_filter import Reach, RowFilter
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once, read, schema
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

PART = "message Part { string sku = 1; int32 count = 2; }"
EVENT: Any = message_factory.GetMessageClass(
    descriptor_of(f"message M {{ string id = 1; repeated Part parts = 2; string note = 3; }} {PART}")
)
KNOWN = "message Part { string sku = 1; } string id = 1; repeated Part parts = 2;"
WHOLE = f"{PART} string id = 1; repeated Part parts = 2; string note = 3;"
LESS = f"{PART} string id = 1; string note = 3;"


def events(start: int, *, known: bool) -> Iterator[dict[str, Any]]:
    for number in range(start, start + 20):
        made = EVENT(id=f"e{number}", parts=[{"sku": "a"}, {"sku": "b"}])
        if not known and number % 2:
            made.note = "note"
        elif not known:
            made.parts[1].count = number + 1
        yield {"value": made.SerializeToString(deterministic=True), "key": b"%d" % number}


def reprocess(config: Path, topic: str, reach: Reach, **options: Any) -> ReprocessReport:
    selected = RowFilter(reach=reach)
    report = Reprocess(load_config(config), topic, selected, engine=InlineEngine(), **options).run()
    assert report.succeeded, report.failures
    return report


def values_of(stack: Stack, config: Path, topic: str) -> list[dict[str, Any]]:
    rows = sorted(read(stack, config, topic).to_pylist(), key=lambda row: row["kafka"]["offset"])
    return [row["val"] for row in rows]


def assert_shows_all(row: dict[str, Any], sent: bytes) -> None:
    made = EVENT.FromString(sent)
    assert (row["id"], row["note"]) == (made.id, made.note)
    assert [(part["sku"], part["count"]) for part in row["parts"]] == [(part.sku, part.count) for part in made.parts]
    assert (row["__raw__"], row["__err__"], row["__unrecognized__"]) == (None, None, None)


def test_unknown_fields_get_their_columns(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, KNOWN)}})
    stack.produce(topic, *events(0, known=True))
    archive_once(config)
    stack.produce(topic, *events(20, known=False))
    archive_once(config)
    kafka = from_kafka(stack, topic, 1)
    assert reprocess(config, topic, Reach.UNRECOGNIZED).commit_id is None, "the schema is no wiser yet"
    schema(tmp_path, WHOLE)

    tried = reprocess(config, topic, Reach.UNRECOGNIZED, dry_run=True)
    assert (tried.found, tried.mended) == ({("val", "unknown fields"): 20},) * 2
    assert reprocess(config, topic, Reach.ERRORS).found == {}, "no errors"
    report = reprocess(config, topic, Reach.UNRECOGNIZED)
    assert (report.files, report.mended) == (1, tried.mended)
    assert report.commit_id is not None
    assert from_archive(config, topic, 1) == kafka
    rows = values_of(stack, config, topic)
    for row, record in zip(rows[20:], kafka[20:], strict=True):
        assert_shows_all(row, record.value)
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = registry.topics.every()
        fit = registry.topics.overview([row])[row.id].recognition.value
    assert (fit.values, fit.unknown, fit.unknown_bytes) == (40, 0, 0)

    read_again: list[str] = []
    plain = ParquetSegmentReader.read
    monkeypatch.setattr(
        ParquetSegmentReader, "read", lambda self, *given: read_again.append(self) or plain(self, *given)
    )
    assert reprocess(config, topic, Reach.UNRECOGNIZED, dry_run=True).found == {}
    assert not read_again, "statistics tell that nothing is left"


def test_rows_never_become_poorer(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, WHOLE)}})
    stack.produce(topic, *events(0, known=False))
    archive_once(config)
    before = read(stack, config, topic)
    schema(tmp_path, LESS)
    for reach in Reach:
        assert reprocess(config, topic, reach).commit_id is None
    assert read(stack, config, topic).column("val").to_pylist() == before.column("val").to_pylist()


def test_what_was_archived_raw_gets_columns(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, *events(0, known=False), {"value": b"\xff"}, {"value": None})
    archive_once(config)
    kafka = from_kafka(stack, topic, 1)
    raw = config.read_text()
    value = schema(tmp_path, WHOLE)
    typed = ", ".join(f'{name} = "{setting}"' for name, setting in value.items())
    config.write_text(raw + f"value = {{ {typed} }}\n")
    assert reprocess(config, topic, Reach.UNRECOGNIZED).found == {}
    report = reprocess(config, topic, Reach.ALL)
    assert report.found == {("row", "schema version 1"): 22}
    assert report.mended == {("row", "schema version 1"): 21}
    assert from_archive(config, topic, 1) == kafka
    rows = values_of(stack, config, topic)
    for row, record in zip(rows[:20], kafka[:20], strict=True):
        assert_shows_all(row, record.value)
    assert (rows[20]["__raw__"], rows[20]["__err__"]) == (b"\xff", None), "no message: it stays as it was"
    assert rows[21] is None
    assert reprocess(config, topic, Reach.ALL).commit_id is None
