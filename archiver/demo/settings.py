"""The demo's configuration."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from google.protobuf import message_factory

from archiver.local import Endpoints
from archiver.schemas.protobuf.schema_files import compile_proto
from schema_mapping.protobuf.descriptors import find_descriptor

TOPIC = "flights"
TABLE = "kafka.flights"
MESSAGE = "flights.Flight"
CATALOG = "lake"
_TOPIC_SECTION = f"""
[topics.{TOPIC}]
table = "{TABLE}"
partition_by = "month"
value = {{ format = "protobuf", message = "{MESSAGE}", proto = "flight.proto" }}
"""


def deploy_schema(folder: Path, version: int) -> type[Any]:
    source = (resources.files("archiver.demo") / f"flight_v{version}.proto").read_text(encoding="utf-8")
    path = folder / "flight.proto"
    path.write_text(source, encoding="utf-8")
    return message_factory.GetMessageClass(find_descriptor(compile_proto(path, MESSAGE)))


def write_config(endpoints: Endpoints) -> Path:
    text = endpoints.config_path.read_text(encoding="utf-8")
    if f"[topics.{TOPIC}]" not in text:
        endpoints.config_path.write_text(text + _TOPIC_SECTION, encoding="utf-8")
    return endpoints.config_path


def sql_options(endpoints: Endpoints, iceberg: Path) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.driver.extraClassPath": str(iceberg / "*"),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{catalog}.client.region": endpoints.s3_region,
        f"{catalog}.cache-enabled": "false",
        **{f"{catalog}.{key}": value for key, value in endpoints.catalog_properties.items()},
    }
