"""Compacts once, in a process of its own, to be killed."""

from __future__ import annotations

import sys

from archiver.config import load_config
from archiver.upkeep.compact.job import Compact, Wish
from tests.support.engine.inline_engine import InlineEngine


def compact(path: str) -> int:
    """Compact every topic, and say how many files that took; 0 if all went well, else 1."""
    return _run(path, Wish(min_files=2))


def move(path: str) -> int:
    """The same, and files of older partition specs move to the current one."""
    return _run(path, Wish(min_files=2, repartition=True))


def _run(path: str, wish: Wish) -> int:
    report = Compact(load_config(path), wish=wish, engine=InlineEngine).run()
    sys.stdout.write(f"{report.done.files_before}\n")
    return 0 if report.succeeded else 1
