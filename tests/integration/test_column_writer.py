"""Spark's readers on our writer's and Arrow's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pytest

from archiver.engine.spark import SparkEngine
from tests.support.servers.stack import Stack
from tests.support.storage.every_type import COUNT, SIZES, WRITERS, Written, conditions, file_of, written_tables
from tests.support.storage.random_rows import rows_of
from tests.support.storage.shredded_rows import python_values

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

VECTORIZED: Final = "spark.sql.parquet.enableVectorizedReader"


@pytest.fixture(scope="module")
def tables(stack: Stack) -> Written:
    return written_tables(stack)


@pytest.fixture(scope="module")
def files(tables: Written, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Local files without UUIDs, which Spark can't read without Iceberg."""
    rows = rows_of(pa.schema(without_uuids(tables.rows.schema)), SIZES, 12, is_tame=True)
    paths = [tmp_path_factory.mktemp("columns") / "written.parquet" for _ in WRITERS]
    for path, writer in zip(paths, WRITERS, strict=True):
        path.write_bytes(file_of(writer, rows))
    return Written(rows, tuple(map(str, paths)))


@pytest.fixture(autouse=True)
def _the_session_as_it_was(engine: SparkEngine) -> Iterator[None]:
    yield
    engine.session.conf.unset(VECTORIZED)


def without_uuids(fields: Iterable[pa.Field]) -> list[pa.Field]:
    return [
        field.with_type(pa.struct(without_uuids(field.type))) if pa.types.is_struct(field.type) else field
        for field in fields
        if field.type != pa.uuid()
    ]


def by_iceberg(engine: SparkEngine, tables: Written, *, vectorized: bool) -> Iterator[Any]:
    """Iceberg's vectorized reader runs if only top-level columns are read."""
    schema = tables.rows.schema
    selected = [field.name for field in schema if not (vectorized and pa.types.is_nested(field.type))]
    reader = engine.session.read.option("vectorization-enabled", vectorized)
    return (reader.table(f"lake.{name}").select(selected) for name in tables.places)


def by_spark(engine: SparkEngine, files: Written, *, vectorized: bool) -> Iterator[Any]:
    engine.session.conf.set(VECTORIZED, vectorized)
    return (engine.session.read.parquet(path) for path in files.places)


def values(frame: Any) -> list[list[Any]]:
    read = frame.coalesce(1).toArrow()
    return [[value for chunk in column.chunks for value in python_values(chunk)] for column in read.columns]


def check(frames: Iterator[Any]) -> None:
    ours, arrows = map(values, frames)
    assert len(ours[0]) == COUNT
    for index, (row, expected) in enumerate(zip(ours, arrows, strict=True)):
        assert row == expected, index


@pytest.mark.parametrize("vectorized", [True, False])
def test_iceberg_reads_each_type_and_encoding(engine: SparkEngine, tables: Written, vectorized: bool) -> None:
    check(by_iceberg(engine, tables, vectorized=vectorized))


@pytest.mark.parametrize("vectorized", [True, False])
def test_spark_reads_each_type_and_encoding_from_files(engine: SparkEngine, files: Written, vectorized: bool) -> None:
    check(by_spark(engine, files, vectorized=vectorized))


@pytest.mark.parametrize("from_tables", [True, False])
def test_pruned_reads_by_spark_keep_every_row(
    engine: SparkEngine, tables: Written, files: Written, from_tables: bool
) -> None:
    """Each condition alone, by which readers prune, finds the rows that all of them find together, without pruning."""
    source = tables if from_tables else files
    read = by_iceberg if from_tables else by_spark
    ours, arrows = read(engine, source, vectorized=True)
    asked = list(conditions(source.rows))
    expected = arrows.selectExpr(*(f"count_if({text})" for text in asked)).collect()[0]
    for condition, count in zip(asked, expected, strict=True):
        assert ours.where(condition).count() == count, condition
