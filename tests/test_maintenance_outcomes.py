"""The page on maintenance shows the observed, right outcomes."""

from __future__ import annotations

import pytest

from tests.support.maintenance.operations import SPARK_OPERATIONS, TRINO_OPERATIONS, Operation
from tests.support.maintenance.recorded import KEYS, PAGE, recorded, with_table
from tests.support.maintenance.verdict import faults

OPERATIONS = (*SPARK_OPERATIONS, *TRINO_OPERATIONS)


def test_the_page_shows_the_outcomes_that_are_kept() -> None:
    page = PAGE.read_text()
    assert with_table(page) == page


def test_every_operation_has_a_name_of_its_own_and_an_outcome() -> None:
    assert len(set(KEYS)) == len(KEYS)
    assert list(recorded()) == list(KEYS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=[case.id for case in OPERATIONS])
def test_no_kept_outcome_loses_anything_in_silence(operation: Operation) -> None:
    assert faults(operation, recorded()[operation.engine, operation.name, operation.beside]) == []
