"""The launcher of Trino."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.servers.stack import Stack, unique
from tests.support.servers.trino import VERSION, Trino

pytestmark = pytest.mark.interop


def test_it_reads_a_table_of_the_stack(stack: Stack, trino: Trino) -> None:
    rows = pa.table({"n": [1, 2], "s": [{"a": "x", "b": 1.5}, None]})
    catalog, name = stack.catalog(), f"kafka.{unique('t')}"
    catalog.create_namespace_if_not_exists("kafka")
    catalog.create_table(name, rows.schema).append(rows)
    assert trino.rows(f"SELECT n, s.a, s.b FROM {name} ORDER BY n") == [[1, "x", 1.5], [2, None, None]]
    assert trino.rows("SELECT version()") == [[VERSION]]
