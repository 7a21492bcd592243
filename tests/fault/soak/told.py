"""Reports of `archiver status`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from archiver.cli.app import app


def problems(config: Path, topic: str) -> list[Any]:
    done = CliRunner().invoke(app, ["status", topic, "--json", "--config", str(config)])
    if done.exit_code == 0:
        return []
    try:
        (entry,) = json.loads(done.stdout)["topics"]
    except (ValueError, KeyError):
        return [done.output]
    reported = [entry.get("problem"), *entry.get("holes", ()), *(item.get("problem") for item in entry["partitions"])]
    return [item for item in reported if item]
