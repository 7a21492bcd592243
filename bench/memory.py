"""Peak proportional memory over all processes of a job, for several sizes of its work (Linux).

For `--job archive`, sizes are of a log of one partition, and take twice that on disk. `archiver archive --once` has two
slots, with the backlog `cut` into tasks, as by default, or in `one`.

For `--job compact`, one task merges files in order, and with overlapping offsets, whose rows wait in `--memory`, then
on disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from archive import stack
from archiving.backlog import batches, fill
from archiving.resident import Peaks, watch
from archiving.side import SLOTS
from compacting import inputs
from data import message_type
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from rich.console import Console
from rich.table import Table

from archiver.codecs import CODEC_WORDS, Codec
from archiver.local import Endpoints
from tests.support.servers.stack import Stack, unique

WAYS: dict[str, dict[str, str]] = {"cut": {}, "one": {"task_size": "1TiB", "max_commit_interval": "1h"}}
MIB = 1 << 20


def config(endpoints: Endpoints, folder: Path, topic: str, way: str) -> Path:
    descriptors = FileDescriptorSet()
    message_type().file.CopyToProto(descriptors.file.add())
    (folder / "shop.binpb").write_bytes(descriptors.SerializeToString())
    value = {"format": "protobuf", "message": "shop.Order", "descriptors": str(folder / "shop.binpb")}
    return Stack(endpoints, folder).config({topic: {"value": value}}, archive=WAYS[way], spark={"master": SLOTS})


def ran(words: list[str], path: Path, log: Path) -> Peaks:
    command = [sys.executable, "-c", "from archiver.cli import main; main()"]
    with log.open("w") as output:
        process = subprocess.Popen(  # noqa: S603
            [*command, *words, "--config", str(path), "--json"],
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        peaks = watch(process)
    if process.returncode:
        raise RuntimeError(f"the job failed, exit code {process.returncode}:\n{log.read_text()[-2000:]}")
    return peaks


def measure(options: argparse.Namespace, endpoints: Endpoints, folder: Path) -> list[dict[str, Any]]:
    parts = batches(Codec.named(options.codec))
    results: list[dict[str, Any]] = []
    for megabytes in options.megabytes:
        topic = unique("backlog")
        records = fill(endpoints.bootstrap_servers, topic, parts, megabytes * 10**6)
        for way in options.way:
            started = time.monotonic()
            log = folder / f"{topic}-{way}.log"
            peaks = ran(["archive", topic, "--once"], config(endpoints, folder, topic, way), log)
            results.append(
                {"way": way, "megabytes": megabytes, "records": records}
                | {"seconds": round(time.monotonic() - started, 1)}
                | vars(peaks)
            )
            print(f"{way}, {megabytes} MB: {peaks.proportional / MIB:,.0f} MiB", flush=True)
    return results


def measure_compaction(options: argparse.Namespace, endpoints: Endpoints, folder: Path) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for count in options.files:
        for way in ("in order", *(f"overlapping, {megabytes}" for megabytes in options.memory)):
            servers, path, topic = inputs.archived(endpoints, folder, files=count, megabytes=options.each)
            if way != "in order":
                inputs.interleaved(servers, path, topic)
            files, size = inputs.files_of(servers, path, topic)
            words = ["compact", topic, "--min-files", "2", "--tasks", "1", "--target-size", f"{2 * size}B"]
            words += ["--memory", way.removeprefix("overlapping, ")] if way != "in order" else []
            started = time.monotonic()
            peaks = ran(words, path, folder / f"{topic}.log")
            seconds = round(time.monotonic() - started, 1)
            left, after = inputs.files_of(servers, path, topic)
            if left != 1:
                raise RuntimeError(f"{files} files became {left}")
            results.append(
                {"way": way, "files": files, "megabytes": size // 10**6, "after": after // 10**6, "seconds": seconds}
                | vars(peaks)
            )
            print(f"{way}, {files} files, {size / 1e6:,.0f} MB: {peaks.proportional / MIB:,.0f} MiB", flush=True)
    return results


def show_compaction(found: list[dict[str, Any]]) -> None:
    table = Table(title="Peak memory of a compaction with one task, MiB")
    for heading in ("way", "files", "MB", "seconds", "sum", "driver, JVM, workers then", "workers alone"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for result in sorted(found, key=lambda entry: (entry["way"], entry["megabytes"])):
        table.add_row(
            result["way"],
            f"{result['files']:,}",
            f"{result['megabytes']:,}",
            str(result["seconds"]),
            f"{result['proportional'] / MIB:,.0f}",
            ", ".join(f"{result['split'].get(kind, 0) / MIB:,.0f}" for kind in ("driver", "JVM", "workers")),
            f"{result['alone'].get('workers', 0) / MIB:,.0f}",
        )
    Console(width=None if Console().is_terminal else 120).print(table)


def show(found: list[dict[str, Any]]) -> None:
    table = Table(title="Peak memory of the archive job, MiB")
    for heading in ("way", "MB of log", "records", "seconds", "sum", "growth", "driver, JVM, workers then", "resident"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for result in sorted(found, key=lambda entry: (entry["way"], entry["megabytes"])):
        least = min((entry for entry in found if entry["way"] == result["way"]), key=lambda entry: entry["megabytes"])
        split = ", ".join(f"{result['split'].get(kind, 0) / MIB:,.0f}" for kind in ("driver", "JVM", "workers"))
        table.add_row(
            result["way"],
            f"{result['megabytes']:,}",
            f"{result['records']:,}",
            str(result["seconds"]),
            f"{result['proportional'] / MIB:,.0f}",
            f"{result['proportional'] / least['proportional'] - 1:+.1%}",
            split,
            f"{result['resident'] / MIB:,.0f}",
        )
    Console(width=None if Console().is_terminal else 120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of archiving and of compaction")
    parser.add_argument("--job", choices=["archive", "compact"], default="archive")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1_000, 10_000], help="of the partition's log")
    parser.add_argument("--way", choices=WAYS, nargs="+", default=list(WAYS))
    parser.add_argument("--codec", choices=CODEC_WORDS, default="none")
    parser.add_argument("--files", type=int, nargs="+", default=[4, 16, 48], help="how many files to put together")
    parser.add_argument("--each", type=int, default=32, help="MB of each file")
    parser.add_argument("--memory", nargs="+", default=["128MiB", "32MiB"], help="for rows that wait for others")
    parser.add_argument("--stack", type=Path, help="the folder of a running stack")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    options = parser.parse_args()
    with stack(options.stack) as endpoints, tempfile.TemporaryDirectory(prefix="archiver-bench-") as folder:
        results = (measure if options.job == "archive" else measure_compaction)(options, endpoints, Path(folder))
    (show if options.job == "archive" else show_compaction)(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
