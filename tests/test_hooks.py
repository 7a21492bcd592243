"""Hooks run as in `make check`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / ".pre-commit-config.yaml"


def hooks() -> list[dict[str, Any]]:
    (local,) = yaml.safe_load(CONFIGURATION.read_text())["repos"]
    return list(local["hooks"])


def recipe(target: str) -> list[str]:
    match = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert match, target
    return [line.strip() for line in match[1].splitlines()]


def test_hooks_are_the_checks() -> None:
    assert [hook["entry"] for hook in hooks()] == recipe("check")


def test_hooks_check_the_whole_tree_by_installed_tools() -> None:
    assert {(hook["language"], hook["pass_filenames"]) for hook in hooks()} == {("system", False)}


def test_pre_commit_takes_the_configuration() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(CONFIGURATION)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
