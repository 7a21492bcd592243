"""What the sides are told: where the stack is, what to archive, and a place for their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from archiver.local import Endpoints
from archiver.local.java import find_java
from archiver.local.maven import Artifact, jars

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
SLOTS = "local[2]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The topic to measure on, a smaller one to warm up on, and a folder."""

    endpoints: Endpoints
    topic: str
    warm_topic: str
    folder: Path


def fetch_kafka_source() -> Path:
    """The folder with the jars of Spark's Kafka source, fetched once."""
    return jars("spark-kafka-source", KAFKA_SOURCE, find_java(), print)
