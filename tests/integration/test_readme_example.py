"""The README's topics of Protobuf, Avro and JSON, and its program."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from archiver.config import load_config
from schema_mapping.protobuf.descriptors import closure
from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.order_schema import order_class
from tests.support.schemas.strategies_avro import written
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

README: Final = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTIONS: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    next(text for text in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "[topics.orders]" in text)
)["topics"]
PROGRAM: Final = next(
    text for text in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "ReplayConsumer(" in text
)
READING: Final = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "id", "type": "long"}, {"name": "unit", "type": ["null", "string"]}],
}
CLICK: Final = {"type": "object", "properties": {"page": {"type": "string"}, "ms": {"type": "number"}}}


def schema_files(folder: Path) -> None:
    (folder / "shop.binpb").write_bytes(closure(order_class().DESCRIPTOR).descriptor_set)
    (folder / "reading.avsc").write_text(json.dumps(READING))
    (folder / "click.schema.json").write_text(json.dumps(CLICK))


VALUES: Final[dict[str, list[bytes]]] = {
    "orders": [order_class()(id=number, customer="c").SerializeToString() for number in range(3)],
    "readings": [written(READING, {"id": number, "unit": "mm"}) for number in range(3)],
    "clicks": [json.dumps({"page": "/buy", "ms": number / 8}).encode() for number in range(3)],
}


def test_topics_of_three_formats_are_read(stack: Stack, tmp_path: Path) -> None:
    topics = {name: stack.topic() for name in VALUES}
    for name, topic in topics.items():
        stack.produce(topic, *({"value": value} for value in VALUES[name]))
    config = stack.config({topic: SECTIONS[name] for name, topic in topics.items()})
    schema_files(config.parent)
    archive_once(config, *topics.values(), engine=InlineEngine())
    for name, topic in topics.items():
        table = stack.catalog().load_table(load_config(config).topic(topic).table)
        rows = table.scan().to_arrow().column("val").combine_chunks()
        assert rows.field("__raw__").null_count == rows.field("__err__").null_count == 3, name
        program = PROGRAM.replace('"archiver.toml"', repr(str(config))).replace('"orders", 0, 1200', f'"{topic}", 0, 1')
        program = program.replace("poll(1.0)", "poll(30.0)")  # a busy machine
        namespace: dict[str, Any] = {}
        exec(program, namespace)
        assert namespace["message"].value() == VALUES[name][1], name
