"""Fixtures that every test may use: `stack`, the real servers, one set for the whole run, xdist workers included.

ARCHIVER_TEST_STACK chooses them: `embedded` (default), `docker` (see stack_docker.py), or the folder of a stack that
`archiver local up` started, which is used as it is and left running.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver.errors import LocalStackError
from archiver.local import LocalStack
from archiver.local.java import find_java
from archiver.local.stack import PARTS
from tests.stack import Stack

CHOICE = os.environ.get("ARCHIVER_TEST_STACK", "embedded")
_FOLDER = "stack"
_GUARD = """
import sys
sys.stdin.read()
from archiver.local import LocalStack
LocalStack(sys.argv[1]).down()
"""


def pytest_report_header() -> list[str]:
    try:
        java = str(find_java().major)
    except LocalStackError:
        java = "none that fits"
    servers = ", ".join(f"{part.title} {part.version}" for part in PARTS)
    libraries = ("confluent-kafka", "kafka-python", "pyspark", "pyiceberg", "pyarrow", "protobuf", "duckdb")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries)
    return [f"stack: {CHOICE}; {servers}, Java {java}", f"libraries: {versions}"]


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Stack]:
    """The real stack, ready; see tests/stack.py for what it offers."""
    scratch = tmp_path_factory.mktemp("stack-scratch")
    match CHOICE:
        case "embedded":
            shared = tmp_path_factory.getbasetemp()
            folder = (shared if worker_id == "master" else shared.parent) / _FOLDER
            with _embedded(folder, ends_here=worker_id == "master") as local:
                yield Stack(local.up(), scratch)
        case "docker":
            from tests.stack_docker import docker_endpoints

            with docker_endpoints(tmp_path_factory.mktemp("stack-docker")) as endpoints:
                yield Stack(endpoints, scratch)
        case folder_in_use:
            yield Stack(LocalStack(folder_in_use).up(), scratch)


@contextmanager
def _embedded(folder: Path, *, ends_here: bool) -> Iterator[LocalStack]:
    local = LocalStack(folder)
    if not ends_here:  # under xdist the controller ends it, after the last worker
        yield local
        return
    with _guard(folder):
        try:
            yield local
        finally:
            local.down()


@contextmanager
def _guard(folder: Path) -> Iterator[None]:
    """Whatever kills this process, its pipe closes, and the guard stops the stack."""
    command = [sys.executable, "-c", _GUARD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None) and CHOICE == "embedded" and not hasattr(config, "workerinput"):
        config.add_cleanup(lambda: _end_shared(config))


def _end_shared(config: pytest.Config) -> None:
    base: Path = config._tmp_path_factory.getbasetemp()
    LocalStack(base / _FOLDER).down()
