"""A side of bench/topics.py: an archive job of many topics, of whatever checkout comes first on the path.

Run as `python -m archiving.many_topics [--in-process] [--profile]`. Each line of JSON it is given asks for one run:
`config` and `topics` begin a new job, which the lines after it run again.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.ingest.job import ArchiveJob
from archiver.ingest.task.work import MODULES
from archiving.cost import measured
from archiving.player import answer
from archiving.side import SLOTS


def runs_of(job: ArchiveJob) -> Callable[[], int]:
    def archive() -> int:
        report = job.run_once()
        if not report.succeeded:
            raise RuntimeError(next(failure for topic in report.topics for failure in topic.failures))
        return report.records

    return archive


def profiled(turn: Callable[[], int]) -> Callable[[], int]:
    def run() -> int:
        profiler = cProfile.Profile()
        try:
            return int(profiler.runcall(turn))
        finally:
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(60)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with ExitStack() as closing:
        engine: Engine
        if options.in_process:
            from tests.support.engine.inline_engine import InlineEngine

            engine = InlineEngine()
        else:
            from archiver.engine.spark import SparkEngine

            engine = closing.enter_context(SparkEngine.start({"master": SLOTS}, preloaded=MODULES))
        gc.freeze()  # as the command does
        answer({"ready": True})
        archive: Callable[[], int] | None = None
        for line in sys.stdin:
            asked = json.loads(line)
            if "config" in asked:
                archive = runs_of(ArchiveJob(load_config(Path(asked["config"])), asked["topics"], engine=engine))
            assert archive is not None
            answer(asdict(measured(profiled(archive) if options.profile else archive)))


if __name__ == "__main__":
    main()
