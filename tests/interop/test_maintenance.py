"""Other engines maintain, change and damage a table: nothing is lost silently.

`make interop RECORD=1` writes docs/engines/maintenance.json and the table of maintenance.md. Otherwise outcomes must
equal it.
"""

from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from archiver.engine.spark import SparkEngine
from tests.support.maintenance.course import Course, Outcome
from tests.support.maintenance.operations import SPARK_OPERATIONS, TRINO_OPERATIONS, Operation
from tests.support.maintenance.recorded import OUTCOMES, key_of, record, recorded
from tests.support.maintenance.verdict import faults
from tests.support.servers.stack import Stack

if TYPE_CHECKING:
    from tests.support.servers.trino import Trino

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

_AT_ONCE = {"lake.expire_snapshots_min_retention": "0s", "lake.remove_orphan_files_min_retention": "0s"}


def judge(operation: Operation, seen: Outcome) -> None:
    if os.environ.get("ARCHIVER_RECORD"):
        record(seen)
    assert faults(operation, seen) == [], json.dumps(asdict(seen), indent=1)
    expected = recorded().get(key_of(seen))
    assert expected == seen, (
        f"{OUTCOMES.name} has another outcome: run again with `make interop RECORD=1`, and look at the diff"
    )


def in_spark(engine: SparkEngine, statement: str) -> Any:
    return engine.session.sql(statement).collect()


def in_trino(trino: Trino, statement: str) -> Any:
    with closing(trino.connect(session_properties=_AT_ONCE)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


@pytest.mark.parametrize("operation", SPARK_OPERATIONS, ids=[case.id for case in SPARK_OPERATIONS])
def test_what_spark_does_is_followed_or_named(
    stack: Stack, engine: SparkEngine, tmp_path: Path, operation: Operation
) -> None:
    course = Course(stack=stack, folder=tmp_path, operation=operation, execute=partial(in_spark, engine))
    judge(operation, course.play())


@pytest.mark.parametrize("operation", TRINO_OPERATIONS, ids=[case.id for case in TRINO_OPERATIONS])
def test_what_trino_does_is_followed_or_named(stack: Stack, trino: Trino, tmp_path: Path, operation: Operation) -> None:
    course = Course(stack=stack, folder=tmp_path, operation=operation, execute=partial(in_trino, trino))
    judge(operation, course.play())
