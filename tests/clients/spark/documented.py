"""Runs blocks of docs/clients.md in Spark and prints their values. Usage: JARS < BLOCKS, as JSON."""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def values_of(rows: DataFrame) -> list[str]:
    return [bytes(row.value).decode() for row in rows.collect()]


def read(spark: SparkSession, block: str) -> list[str]:
    """The block defines `records`, or a started `query`."""
    kept: list[str] = []
    names: dict[str, Any] = {"spark": spark, "keep": lambda rows, _: kept.extend(values_of(rows))}
    exec(compile(block, "clients.md", "exec"), names)
    if "records" in names:
        return values_of(names["records"])
    names["query"].awaitTermination()
    return kept


def main() -> None:
    session = SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[1])
    session = session.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    session = session.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    spark = session.getOrCreate()
    json.dump([read(spark, program) for program in json.load(sys.stdin)], sys.stdout)
    spark.stop()


main()
