"""Compacts once in a process, to be killed."""

from __future__ import annotations

import sys

from archiver.config import load_config
from archiver.upkeep.compact.job import Compact, Wish
from tests.support.engine.inline_engine import InlineEngine


def compact(path: str) -> int:
    return _run(path, Wish(min_files=2))


def move(path: str) -> int:
    return _run(path, Wish(min_files=2, repartition=True))


def _run(path: str, wish: Wish) -> int:
    report = Compact(load_config(path), wish=wish, engine=InlineEngine).run()
    sys.stdout.write(f"{report.done.files_before}\n")
    return 0 if report.succeeded else 1
