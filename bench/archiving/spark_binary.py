"""Spark's Kafka source, appended to an Iceberg table as binary."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from archiver.demo.settings import CATALOG, sql_options
from archiver.local.fetch import fetch_iceberg
from archiver.local.java import find_java
from archiver.local.maven import Artifact, jars
from archiving.side import SLOTS, Setting, Side
from tests.support.servers.stack import unique

COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp timestamp"

KAFKA_SOURCE = (
    Artifact(organisation="org.apache.spark", name="spark-sql-kafka-0-10_2.13", revision="4.1.3", transitive=False),
    Artifact(
        organisation="org.apache.spark",
        name="spark-token-provider-kafka-0-10_2.13",
        revision="4.1.0-preview1",
        transitive=False,
    ),
    Artifact(organisation="org.apache.kafka", name="kafka-clients", revision="3.9.1", transitive=False),
    Artifact(organisation="org.apache.commons", name="commons-pool2", revision="2.12.1", transitive=False),
)


class SparkBinary(Side):
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
        return sum(row.record_count for row in self._spark.table(f"{table}.files").select("record_count").collect())


def fetch_kafka_source() -> Path:
    return jars("spark-kafka-source", KAFKA_SOURCE, find_java(), print)
