"""Bounds beside NaN in files of 0.1."""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path

import pytest
from google.protobuf.message_factory import GetMessageClass
from pyiceberg.manifest import DataFile

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.upkeep.compact.choice import Reason
from archiver.upkeep.compact.job import Compact
from tests.support.archive.job_runs import archive_once
from tests.support.archive.three_engines import duckdb_on
from tests.support.catalog.foreign_writes import replace_entries
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PROTO = 'syntax = "proto3"; package t; message Event { optional double d = 1; }'
PAGE = Path(__file__).parents[2] / "docs" / "engines.md"


@pytest.fixture
def archived(stack: Stack, tmp_path: Path) -> tuple[Path, str]:
    proto = tmp_path / "event.proto"
    proto.write_text(PROTO)
    event = GetMessageClass(descriptor_of(PROTO, "t.Event"))
    topic = stack.topic()
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "t.Event", "proto": str(proto)}}})
    for numbers in ([1.5, math.nan, 1.5], [1.5, 2.5]):
        stack.produce(topic, *({"value": event(d=number).SerializeToString()} for number in numbers))
        archive_once(config, topic, engine=InlineEngine())
    return config, load_config(config).topic(topic).table


def test_bounds_beside_nan_are_found_and_compacted_away(
    stack: Stack, archived: tuple[Path, str], engine: SparkEngine
) -> None:
    config, name = archived
    field = stack.catalog().load_table(name).schema().find_field("val.d").field_id
    (query,) = re.findall(
        r"^  SELECT DISTINCT file_path.*?;", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    asked = " ".join(query.split()).replace("lake.kafka.orders", f"lake.{name}").rstrip(";")

    def hiding() -> set[str]:
        engine.session.sql(f"REFRESH TABLE lake.{name}")
        return {path for (path,) in engine.session.sql(asked).collect()}

    def as_before(file: DataFile) -> DataFile:
        if (file.nan_value_counts or {}).get(field):
            bound = struct.pack("<d", 1.5)
            file.lower_bounds[field] = file.upper_bounds[field] = bound
        return file

    assert hiding() == set()
    old = replace_entries(stack.catalog().load_table(name), as_before)
    nan = {file.file_path for file in old if (file.nan_value_counts or {}).get(field)}
    assert hiding() == nan
    assert len(nan) == 1
    (done,) = Compact(load_config(config), engine=InlineEngine).run().topics
    assert done.error is None
    assert done.reasons[Reason.NAN] == 1
    assert hiding() == set()
    with duckdb_on(stack) as connection:
        for condition, rows in (("> 1.5", 2), ("<> 1.5", 2), ("NOT (val.d <= 1.5)", 2), ("= 1.5", 3)):
            where = condition if "val.d" in condition else f"val.d {condition}"
            assert connection.sql(f"SELECT count(*) FROM lake.{name} WHERE {where}").fetchone() == (rows,), where
