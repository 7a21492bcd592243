"""Fetches jars."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from archiver.local.java import find_java
from archiver.local.kafka import fetch_kafka
from archiver.local.maven import Artifact, jars
from archiver.local.part import Say

ICEBERG_JARS: Final = (
    Artifact(organisation="org.apache.iceberg", name="iceberg-spark-runtime-4.1_2.13", revision="1.12.0"),
    Artifact(organisation="org.apache.iceberg", name="iceberg-aws-bundle", revision="1.12.0"),
)


def fetch_iceberg(say: Say) -> Path:
    """Raises LocalStackError."""
    return jars("iceberg-spark", ICEBERG_JARS, find_java(), say)


def fetch_all(say: Say) -> tuple[Path, ...]:
    """Raises LocalStackError."""
    fetches = (fetch_kafka, fetch_iceberg)
    with ThreadPoolExecutor(len(fetches), thread_name_prefix="fetch") as pool:
        return tuple(pool.map(lambda fetch: fetch(say), fetches))
