"""Archives once in a process, to be killed: `python -m tests.fault.archive_process CONFIG`."""

from __future__ import annotations

import sys

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.ingest.job import ArchiveJob
from archiver.ingest.stopping import stop_on_signals
from tests.support.engine.inline_engine import InlineEngine


def archive(path: str, engine: Engine) -> int:
    with stop_on_signals() as stop:
        report = ArchiveJob(load_config(path), engine=engine).run_once(stop)
    for topic in report.topics:
        for partition, error in topic.failures:
            sys.stderr.write(f"{topic.topic}/{partition}: {type(error).__name__}: {error}\n")
    sys.stdout.write(f"{report.records}\n")
    return 0 if report.succeeded else 1


def archive_inline(path: str) -> int:
    return archive(path, InlineEngine())


if __name__ == "__main__":
    from archiver.engine.spark import SparkEngine

    with SparkEngine.start({"master": "local[2]"}) as spark:
        sys.exit(archive(sys.argv[1], spark))
