"""Trino reads our writer's file as Arrow's."""

from __future__ import annotations

import pytest
from pyiceberg.types import TimeType

from tests.support.servers.stack import Stack
from tests.support.servers.trino import Trino
from tests.support.storage.every_type import COUNT, KINDS, Written, conditions, written_tables

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def tables(stack: Stack) -> Written:
    return written_tables(stack, {**KINDS, "time": TimeType()})


def test_trino_reads_each_type_and_encoding(tables: Written, trino: Trino) -> None:
    for name in tables.rows.schema.names:
        ours, arrows = (trino.rows(f"SELECT {name} FROM {source}") for source in tables.places)
        assert len(ours) == COUNT
        assert sorted(map(repr, ours)) == sorted(map(repr, arrows)), name


def test_pruned_reads_by_trino_keep_every_row(tables: Written, trino: Trino) -> None:
    """Each condition alone, by which it prunes, finds what all at once find, by which it doesn't."""
    ours, arrows = tables.places
    asked = list(conditions(tables.rows))
    ((*expected,),) = trino.rows(f"SELECT {', '.join(f'count_if({clause})' for clause in asked)} FROM {arrows}")
    for condition, count in zip(asked, expected, strict=True):
        assert trino.rows(f"SELECT count(*) FROM {ours} WHERE {condition}") == [[count]], condition
