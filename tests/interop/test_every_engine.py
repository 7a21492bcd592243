"""Every engine reads every type of column through every schema change.

Errors in docs/engines/types.json must still fail, so that a fixed engine is noticed. `make interop RECORD=1` writes
that file again.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.archive.engine_findings import ENGINES, TABLES, Findings, keep, kept
from tests.support.archive.type_cases import FIELDS, Case, FieldCase
from tests.support.servers import trino

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PACKAGES = ("pyspark", "duckdb", "pyiceberg", "polars", "chdb-core", "datafusion", "pyiceberg-core")


def asked() -> Iterator[Any]:
    outcomes = kept()
    for table, cases in TABLES.items():
        for case in cases:
            for engine in ENGINES:
                outcome = outcomes.get(table, {}).get(case.title, {}).get(engine, "right")
                marks = (
                    [] if outcome == "right" else [pytest.mark.xfail(strict=True, reason=f"{outcome}: docs/engines")]
                )
                yield pytest.param(engine, case, marks=marks, id=f"{engine}-{case.title}")


@pytest.mark.parametrize(("by", "case"), list(asked()))
def test_rows_are_those_that_were_sent(findings: Findings, by: str, case: Case | FieldCase) -> None:
    assert findings.find(by, case) == "right", findings.errors.get((by, case.title))


@pytest.mark.parametrize("case", FIELDS, ids=lambda case: case.title)
@pytest.mark.parametrize("by", ["clickhouse, whole", "datafusion, by pyiceberg"])
def test_the_ways_round_that_the_docs_tell_of_give_every_field(findings: Findings, by: str, case: FieldCase) -> None:
    assert findings.find(by, case) == "right", findings.errors.get((by, case.title))


def test_the_docs_tell_what_was_found(findings: Findings) -> None:
    engines = [name for name in ENGINES if name != "trino" or trino.newest_java()]
    outcomes: dict[str, Any] = {
        table: {case.title: {name: findings.find(name, case) for name in engines} for case in cases}
        for table, cases in TABLES.items()
    }
    outcomes["versions"] = {name: importlib.metadata.version(name) for name in PACKAGES} | {"trino": trino.VERSION}
    if os.environ.get("ARCHIVER_RECORD"):
        keep(outcomes)
    documented = kept()
    for table in TABLES:
        expected = {title: {name: row[name] for name in engines} for title, row in documented[table].items()}
        assert outcomes[table] == expected
    assert outcomes["versions"] == documented["versions"]
