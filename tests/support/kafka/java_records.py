"""Kafka's Java client and DumpLogSegments on files of batches."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from archiver.local.java import find_java
from archiver.local.kafka import ARTIFACTS
from archiver.local.maven import jars
from archiver.local.releases import KAFKA
from tests.support.kafka.record_batches import headers_of_rows

SOURCE = Path(__file__).parents[2] / "java" / "RecordJudge.java"
_DUMPED = re.compile(
    r"^\| offset: (?P<offset>\d+) (CreateTime|LogAppendTime): (?P<timestamp>-?\d+) keySize: -?\d+ valueSize: -?\d+ "
    r"sequence: (?P<sequence>-?\d+) headerKeys: \[(?P<names>.*?)\](?: key: (?P<key>.*?))?(?: payload: (?P<value>.*))?$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaView:
    batches: tuple[dict[str, Any], ...]
    records: tuple[dict[str, Any], ...]


def java(*arguments: str) -> str:
    java = find_java()
    folder = jars(f"kafka-{KAFKA}", ARTIFACTS, java, lambda _: None)
    done = subprocess.run(
        [java.executable, "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*", *arguments],
        capture_output=True,
        text=True,
        errors="backslashreplace",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_by_java(*files: Path) -> dict[str, JavaView]:
    seen: dict[str, list[dict[str, Any]]] = {file.name: [] for file in files}
    for line in java(str(SOURCE), "read", *map(str, files)).splitlines():
        entry = json.loads(line)
        seen[entry.pop("file")].append(entry)
    return {
        name: JavaView(
            batches=tuple(entry for entry in entries if "magic" in entry),
            records=tuple(entry for entry in entries if "magic" not in entry),
        )
        for name, entries in seen.items()
    }


def dumped(segment: Path) -> list[tuple[int, int, int, list[str], str, str]]:
    tool = ("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--print-data-log", "--files", str(segment))
    lines = java(*tool).splitlines()
    batches = [line for line in lines if line.startswith("baseOffset:")]
    assert batches
    assert all(line.endswith("isvalid: true") for line in batches), batches
    result = []
    for line in lines:
        if match := _DUMPED.match(line):
            names = match["names"].split(",") if match["names"] else []
            numbers = int(match["offset"]), int(match["timestamp"]), int(match["sequence"])
            result.append((*numbers, names, match["key"], match["value"]))
    assert len(result) == sum(int(re.findall(r" count: (\d+)", line)[0]) for line in batches)
    return result


def seen_by_us(records: pa.RecordBatch) -> list[dict[str, Any]]:
    names = ("offset", "timestamp_type", "timestamp", "append_timestamp", "key", "value")
    columns = [records.column(name).to_pylist() for name in names]
    return [
        {
            "offset": offset,
            "timestamp": append if kind == 1 else timestamp,
            "timestamp_type": kind,
            "key": _base64(key),
            "value": _base64(value),
            "headers": [[_base64(name.decode("utf-8", "replace").encode()), _base64(text)] for name, text in headers],
        }
        for offset, kind, timestamp, append, key, value, headers in zip(*columns, headers_of_rows(records), strict=True)
    ]


def _base64(octets: bytes | None) -> str | None:
    return None if octets is None else base64.b64encode(octets).decode()
