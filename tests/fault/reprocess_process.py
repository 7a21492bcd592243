"""Reprocesses once in a process, to be killed."""

from __future__ import annotations

import sys

from archiver.config import load_config
from archiver.upkeep.reprocess.job import Reprocess
from tests.support.engine.inline_engine import InlineEngine


def reprocess(path: str, topic: str) -> int:
    report = Reprocess(load_config(path), topic, engine=InlineEngine()).run()
    sys.stdout.write(f"{sum(report.mended.values())}\n")
    return 0 if report.succeeded else 1
