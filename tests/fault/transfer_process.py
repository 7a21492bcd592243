"""A killable `archiver replay --to-kafka`. Imports are here, for fast forks."""

from __future__ import annotations

from archiver.cli.app import app


def replay(*arguments: str) -> int:
    try:
        app(["replay", *arguments], prog_name="archiver")
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
