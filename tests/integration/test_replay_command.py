"""`archiver replay` to a file or standard output."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format
from google.protobuf.message_factory import GetMessageClass
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_kafka
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

ARCHIVER = Path(sys.executable).with_name("archiver")
FIRST = 'syntax = "proto3"; package t; message M { int64 a_number = 1; string b = 2; }'
SECOND = 'syntax = "proto3"; package t; message M { int64 a_number = 1; bytes called = 2; repeated double c = 3; }'


def replay(config: Path, topic: str, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["replay", topic, "--config", str(config), *map(str, arguments)])


def find(config: Path, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["find", "--config", str(config), *map(str, arguments)])


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic(2)
    stack.produce(
        topic,
        *(
            {"key": b"k", "value": b"v" * 2_000, "partition": number % 2, "timestamp": 1_000 + number}
            for number in range(400)
        ),
    )
    config = stack.config({topic: {}})
    archive_once(config, topic)
    return config, topic


def test_a_file_and_its_summary(archived: tuple[Path, str], tmp_path: Path) -> None:
    config, topic = archived
    file = tmp_path / "records.jsonl"
    done = replay(config, topic, "-o", file)
    assert done.exit_code == 0, done.output
    lines = file.read_bytes().splitlines()
    assert len(lines) == 400
    summary = json.loads(done.stdout)
    assert (summary["event"], summary["records"], summary["file"]) == ("replayed", 400, str(file))
    assert summary["size_bytes"] == file.stat().st_size
    assert "400 records" in replay(config, topic, "-o", file, "--no-json").stdout
    assert [*tmp_path.iterdir()] == [file]


def test_a_limit_ends_after_so_many(archived: tuple[Path, str], tmp_path: Path) -> None:
    config, topic = archived
    whole = replay(config, topic).stdout.splitlines()
    for limit in (1, 200, 201, 400, 10_000):
        assert replay(config, topic, "--limit", limit).stdout.splitlines() == whole[:limit]
    arrow = tmp_path / "records.arrow"
    assert replay(config, topic, "--limit", 201, "--format", "arrow", "-o", arrow).exit_code == 0
    assert pa.ipc.open_stream(arrow.read_bytes()).read_all().num_rows == 201
    some = replay(config, topic, "--where", "offset >= 198 and partition = 1", "--limit", 1)
    assert [json.loads(line)["offset"] for line in some.stdout.splitlines()] == [198]


def test_ranges_that_hold_nothing_are_told(archived: tuple[Path, str]) -> None:
    config, topic = archived
    beyond = replay(config, topic, "--from", 5_000)
    assert (beyond.exit_code, beyond.stdout) == (0, "")
    for partition in range(2):
        assert f"partition {partition}: nothing in this range; the archive has offsets 0 to 199" in beyond.stderr
    partly = replay(config, topic, "--to", 300, "-p", 1)
    assert len(partly.stdout.splitlines()) == 200
    assert "partition 1: asked for up to 300; the archive has offsets 0 to 199" in partly.stderr
    inverted = replay(config, topic, "--from", 20, "--to", 10)
    assert inverted.exit_code == 2
    assert "--from comes after --to" in inverted.stderr
    assert replay(config, topic, "-p", 7).exit_code == 2
    wrong = replay(config, topic, "--where", "key = order-1")
    assert wrong.exit_code == 2
    assert "at character 7: expected text in quotes" in wrong.stderr


def test_a_full_disk_is_told_and_leaves_nothing(archived: tuple[Path, str], tmp_path: Path) -> None:
    config, topic = archived
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "records.jsonl"
    file.write_text("old")

    def small_files_only() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    for form in ("jsonl", "arrow"):
        command = [
            str(ARCHIVER),
            "replay",
            topic,
            "--config",
            str(config),
            "-o",
            str(file),
            "--format",
            form,
            "--no-json",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, preexec_fn=small_files_only
        )
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert "ReplayError: The output can't be written: File too large" in done.stderr
        assert str(file) in done.stderr
    assert file.read_text() == "old"
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize("columns", [80, 50])
def test_a_terminal_gets_a_line_at_the_end(archived: tuple[Path, str], tmp_path: Path, columns: int) -> None:
    config, topic = archived
    file = tmp_path / "records.jsonl"
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen(
        [str(ARCHIVER), "replay", topic, "--config", str(config), "--no-json", "-o", str(file)],
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        assert process.wait(60) == 0
    os.close(ours)
    assert f"{topic}: 400 records, 0.9 MB, in ".encode() in shown.replace(b"\r\n", b"\n")


def test_values_are_shown_by_the_schema_that_wrote_them(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic(1)
    proto = tmp_path / "m.proto"
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "t.M", "proto": str(proto)}}})
    sent: list[tuple[str, bytes | None]] = []
    for text, fields in (
        (FIRST, {"a_number": 7, "b": "text"}),
        (SECOND, {"a_number": -1, "called": b"\xff", "c": [0.5]}),
    ):
        proto.write_text(text)
        values = [
            GetMessageClass(descriptor_of(text))(**fields).SerializeToString(),
            b"\x0a",
            None,
            b"\x08\x01\x08\x02",
        ]
        stack.produce(topic, *({"value": value, "key": b"k", "partition": 0} for value in values))
        archive_once(config, topic)
        sent += [(text, value) for value in values]

    done = replay(config, topic, "--decode")

    assert done.exit_code == 0, done.output
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["offset"] for line in lines] == [record.offset for record in from_kafka(stack, topic, 1)]
    assert [line["schema_version"] for line in lines] == [1] * 4 + [2] * 4
    assert {(line["key_type"], line["key"]) for line in lines} == {(None, "k")}
    for line, (text, value) in zip(lines, sent, strict=True):
        if value is None:
            assert (line["value"], line["value_type"]) == (None, None)
        elif value == b"\x0a":
            assert line["value_type"] is None
            assert b64decode(line["value"]["base64"]) == value
            assert line["value"]["reason"].startswith("not decoded: truncated")
        else:
            judge = GetMessageClass(descriptor_of(text)).FromString(value)
            assert line["value_type"] == "t.M"
            assert line["value"] == json_format.MessageToDict(judge)
    assert lines[0]["value"] == {"aNumber": "7", "b": "text"}
    assert replay(config, topic, "--decode", "--format", "arrow").exit_code == 2


def test_find_gives_the_records_of_a_replay(archived: tuple[Path, str]) -> None:
    config, topic = archived
    where = ("--where", "key = 'k' and offset in (7, 150) or time = 1010")
    lines = replay(config, topic, "--decode", *where).stdout.splitlines()
    searched = find(config, topic, *where, "--explain")
    assert searched.exit_code == 0, searched.output
    assert sorted(searched.stdout.splitlines()) == sorted(lines)
    assert len(lines) == 5
    times = [json.loads(line)["timestamp"] for line in searched.stdout.splitlines()]
    assert times == sorted(times, reverse=True)
    summary = json.loads(searched.stderr.splitlines()[-1])
    assert (summary["event"], summary["records"]) == ("found", len(times))
    assert summary["explain"]["requests"] > 0
    newest = find(config, f"{topic[:-1]}?", "--limit", 1, "--no-json")
    assert "1970-01-01T00:00:01.399Z" in newest.stdout
    assert find(config, topic, "--key", "k", "--count", "--no-json").stdout.strip() == "400"
    files = find(config, topic, "--where", "offset = 3 and partition = 1", "--files", "--no-json").stdout.split()
    assert len(files) == 1
    assert files[0].startswith("s3://")
    nothing = find(config, topic, "--key", "other")
    assert (nothing.exit_code, nothing.stdout) == (3, "")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--where", "val.id ="), "--where, at character 9"),
        (("--partition", 9), "the archive has no such partition"),
        (("--count", "--files"), "--count, --files, and --format or --limit don't go together"),
        (("--from", "latest"), "--from is an offset or a time"),
    ],
)
def test_searches_without_a_meaning_are_errors(
    archived: tuple[Path, str], arguments: tuple[object, ...], error: str
) -> None:
    config, topic = archived
    refused = find(config, topic, *arguments)
    assert refused.exit_code == 2
    assert error in refused.stderr
    assert find(config, "no-such-*").exit_code == 2
