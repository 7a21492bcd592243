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
        (found,) = json.loads(done.stdout)["topics"]
    except (ValueError, KeyError):
        return [done.output]
    told = [found.get("problem"), *found.get("holes", ()), *(each.get("problem") for each in found["partitions"])]
    return [each for each in told if each]
