"""Programs installed once by Go and npm."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.fetched import TIMEOUT_S, fetched


def go_program(module: str, version: str) -> Path:
    """Skips the test without Go."""
    name = module.rpartition("/")[2]
    folder = fetched(f"{name}-{version}", lambda folder: _run(_go(), "install", f"{module}@{version}", GOBIN=folder))
    return folder / name


def npm_package(name: str, version: str) -> Path:
    """Skips the test without npm."""
    folder = fetched(
        f"{name}-{version}",
        lambda folder: _run(_npm(), "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{name}@{version}"),
    )
    return folder / "node_modules" / name


def node() -> str:
    return _found("node", "Node.js isn't here")


def _go() -> str:
    return _found("go", "Go isn't here, to compile the store with")


def _npm() -> str:
    return _found("npm", "npm isn't here, to install the store with")


def _found(program: str, reason: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(reason)
    return path


def _run(*command: str, **environment: Path) -> None:
    settings = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-2000:]
