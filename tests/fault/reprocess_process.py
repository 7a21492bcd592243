"""Reprocesses once in a process of its own, to be killed: `python -m tests.fault.reprocess_process CONFIG TOPIC`."""

from __future__ import annotations

import sys

from archiver.config import load_config
from archiver.upkeep.reprocess import Reprocess
from tests.inline_engine import InlineEngine

if __name__ == "__main__":
    path, topic = sys.argv[1:]
    report = Reprocess(load_config(path), topic, engine=InlineEngine()).run()
    sys.stdout.write(f"{sum(report.mended.values())}\n")
    sys.exit(0 if report.succeeded else 1)
