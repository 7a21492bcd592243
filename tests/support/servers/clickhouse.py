"""ClickHouse as a library (chdb), in a process with one session."""

from __future__ import annotations

import functools
import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa


class Clickhouse:
    """Databases and settings end with it."""

    def __init__(self, process: Executor) -> None:
        self._process = process

    def query(self, statement: str) -> pa.Table:
        """Strings are bytes. By a file: chdb's results were sometimes broken. Raises RuntimeError."""
        with tempfile.NamedTemporaryFile(suffix=".arrow") as file:
            self.run(
                f"{statement} INTO OUTFILE '{file.name}' TRUNCATE FORMAT Arrow "
                "SETTINGS output_format_arrow_string_as_string = 0"
            )
            return pa.ipc.open_file(file.name).read_all()

    def run(self, statement: str) -> None:
        self._process.submit(_answer, statement).result()


@contextmanager
def clickhouse() -> Iterator[Clickhouse]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        yield Clickhouse(process)


@functools.cache
def _session() -> Any:
    from chdb.session import Session

    return Session()


def _answer(statement: str) -> None:
    _session().query(statement)
