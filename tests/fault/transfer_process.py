"""`archiver replay --to-kafka` in a process of its own, to be killed.

What it needs is imported here, so that a process forked from one that has it starts at once.
"""

from __future__ import annotations

from archiver.cli.app import app


def replay(*arguments: str) -> int:
    """Run the command; its exit code."""
    try:
        app(["replay", *arguments], prog_name="archiver")
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
