"""Archives once in a process of its own, to be killed: `python -m tests.fault.archive_process CONFIG [spark]`."""

from __future__ import annotations

import sys

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.engine.spark import SparkEngine
from archiver.ingest.job import ArchiveJob
from archiver.ingest.stopping import stop_on_signals
from tests.inline_engine import InlineEngine


def main(path: str, engine: Engine | None) -> int:
    with stop_on_signals() as stop:
        report = ArchiveJob(load_config(path), engine=engine).run_once(stop)
    for topic in report.topics:
        for partition, error in topic.failures:
            sys.stderr.write(f"{topic.topic}/{partition}: {type(error).__name__}: {error}\n")
    sys.stdout.write(f"{report.records}\n")
    return 0 if report.succeeded else 1


if __name__ == "__main__":
    if sys.argv[2:] == ["spark"]:
        with SparkEngine.start({"master": "local[2]"}) as spark:
            sys.exit(main(sys.argv[1], spark))
    sys.exit(main(sys.argv[1], InlineEngine()))
