"""Spark's own Kafka source, its rows appended to an Iceberg table as they are: keys and values stay binary."""

from __future__ import annotations

from pyspark.sql import SparkSession

from archiver.demo.settings import CATALOG, fetch_iceberg, sql_options
from archiving.setting import SLOTS, Setting, fetch_kafka_source
from archiving.side import Side
from tests.support.servers.stack import unique

COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp timestamp"


class SparkBinary(Side):
    """A Spark session, and a table for each turn."""

    name = "Spark, binary"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        iceberg, source = fetch_iceberg(print), fetch_kafka_source()
        options = sql_options(setting.endpoints, iceberg) | {
            "spark.driver.extraClassPath": f"{iceberg}/*:{source}/*",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master(SLOTS).appName("binary")
        for key, value in options.items():
            builder = builder.config(key, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.bench")

    def archive(self, topic: str) -> int:
        """Append the topic to a new table."""
        table = f"{CATALOG}.bench.{unique('binary')}"
        self._spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg")
        rows = (
            self._spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self.setting.endpoints.bootstrap_servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        rows.select("key", "value", "partition", "offset", "timestamp").writeTo(table).append()
        return sum(each.record_count for each in self._spark.table(f"{table}.files").select("record_count").collect())
