"""Compacts once, in a process of its own, to be killed."""

from __future__ import annotations

import sys

from archiver.config import load_config
from archiver.upkeep.compact.job import Compact, Wish
from tests.support.engine.inline_engine import InlineEngine


def compact(path: str) -> int:
    """Compact every topic, and say how many files that took; 0 if all went well, else 1."""
    report = Compact(load_config(path), wish=Wish(min_files=2), engine=InlineEngine).run()
    sys.stdout.write(f"{report.done.files_before}\n")
    return 0 if report.succeeded else 1
