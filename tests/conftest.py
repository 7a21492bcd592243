"""The fixtures `stack`, real servers for a whole run with its xdist workers, and `engine`.

ARCHIVER_TEST_STACK: `embedded` (default), `docker` (see stack_docker.py), or the folder of a stack of `archiver local
up`, which is used as it is and left running.

ARCHIVER_TEST_CATALOG: `embedded` (default) or another Iceberg catalog (tests/support/catalog/choice.py).

HYPOTHESIS_PROFILE: `deterministic` (default, CI too) or `exhaustive`. Neither has a deadline.
"""

from __future__ import annotations

import importlib.metadata
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from archiver.errors import LocalStackError
from archiver.local import LocalStack
from archiver.local.java import find_java
from archiver.local.stack import PARTS
from tests.support.catalog.choice import CATALOG, stack_with
from tests.support.servers.embedded import embedded
from tests.support.servers.stack import Stack

if TYPE_CHECKING:
    from archiver.engine.spark import SparkEngine

CHOICE = os.environ.get("ARCHIVER_TEST_STACK", "embedded")
_FOLDER = "stack"
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background hands that on to all it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("COLUMNS", None)  # xdist gives its workers a width, and commands would keep to it off a terminal, too

os.environ["ARCHIVER_OUTPUT"] = "json"  # tests read output as machines do; on a terminal they read it as people do

settings.register_profile(
    "deterministic", derandomize=True, database=None, deadline=None, max_examples=60, suppress_health_check=_SLOW
)
settings.register_profile("exhaustive", deadline=None, max_examples=5_000, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


def pytest_report_header() -> list[str]:
    try:
        java = str(find_java().major)
    except LocalStackError:
        java = "none that fits"
    servers = ", ".join(f"{part.title} {part.version}" for part in PARTS)
    libraries = ("confluent-kafka", "kafka-python", "pyspark", "pyiceberg", "pyarrow", "protobuf", "duckdb")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries)
    return [f"stack: {CHOICE}, catalog: {CATALOG}; {servers}, Java {java}", f"libraries: {versions}"]


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with _stack(tmp_path_factory) as servers, stack_with(CATALOG, servers, tmp_path_factory) as chosen:
        yield chosen


@contextmanager
def _stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    scratch = tmp_path_factory.mktemp("stack-scratch")
    match CHOICE:
        case "embedded":
            base = tmp_path_factory.getbasetemp()
            is_worker = "PYTEST_XDIST_WORKER" in os.environ
            with embedded((base.parent if is_worker else base) / _FOLDER, ends_here=not is_worker) as local:
                yield Stack(local.up(), scratch)
        case "docker":
            from tests.support.servers.stack_docker import docker_endpoints

            with docker_endpoints(tmp_path_factory.mktemp("stack-docker")) as endpoints:
                yield Stack(endpoints, scratch)
        case folder_in_use:
            yield Stack(LocalStack(folder_in_use).up(), scratch)


@pytest.fixture(scope="session")
def engine(stack: Stack) -> Iterator[SparkEngine]:
    """Real Spark with two cores, which reads Iceberg tables as `lake`.

    One session per process: the JVM outlives it, and jars missing from its class path can't be added later.
    """
    from archiver.demo.settings import sql_options
    from archiver.engine.spark import SparkEngine
    from archiver.local.fetch import fetch_iceberg

    options = sql_options(stack.endpoints, fetch_iceberg(lambda _: None))
    with SparkEngine.start({"master": "local[2]", **options}) as started:
        yield started


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Under xdist, end the shared stack after the last worker."""
    is_controller = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if is_controller and CHOICE == "embedded":
        folder: Path = config._tmp_path_factory.getbasetemp() / _FOLDER
        shared = ExitStack()
        shared.enter_context(embedded(folder))
        config.add_cleanup(shared.close)
