"""Reads with Spark's Kafka source. Usage: JARS read|stream ADDRESS TOPIC."""

import base64
import json
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession


def rows(spark: SparkSession, mode: str, address: str, topic: str) -> DataFrame:
    reader = (spark.read if mode == "read" else spark.readStream).format("kafka")
    options = {
        "kafka.bootstrap.servers": address,
        "kafka.isolation.level": "read_committed",
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": "60",
    }
    frame = reader.options(**options).load()
    if mode == "read":
        return frame
    folder = tempfile.mkdtemp()
    writer = frame.writeStream.format("parquet").option("path", f"{folder}/rows")
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    return spark.read.parquet(f"{folder}/rows")


def octets(value: bytearray | None) -> str | None:
    return None if value is None else base64.b64encode(bytes(value)).decode()


def main() -> None:
    jars, mode, address, topic = sys.argv[1:]
    session = SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    spark = session.config("spark.log.level", "ERROR").getOrCreate()
    frame = rows(spark, mode, address, topic)
    for row in frame.selectExpr("*", "unix_millis(timestamp) AS millis").toLocalIterator():
        headers = [{"name": header.key, "value": octets(header.value)} for header in row.headers or ()]
        fields = {"partition": row.partition, "offset": row.offset, "kind": row.timestampType + 1, "time": row.millis}
        line = json.dumps({**fields, "key": octets(row.key), "value": octets(row.value), "headers": headers})
        sys.stdout.write(f"{line}\n")
    spark.stop()


main()
