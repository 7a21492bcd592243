"""A topic archived by a wrong schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import message_factory

from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

PARTITIONS = 2
DAY = 86_400_000
START = 1_767_225_600_000

WRONG = """
syntax = "proto3"; package t;
message Name { string text = 1; }
message Event { int32 id = 1; string name = 2; Name who = 3; repeated int32 counts = 4; }
"""
RIGHT = """
syntax = "proto3"; package t;
message Name { bytes text = 1; }
message Event { int64 id = 1; bytes name = 2; Name who = 3; repeated int32 counts = 4; map<string, int32> more = 5; }
"""


def event(number: int, *, name: bytes) -> bytes:
    kind = message_factory.GetMessageClass(descriptor_of(RIGHT, "t.Event"))
    made = kind(id=number, name=name, counts=range(number % 3))
    if number % 4 == 0:
        made.who.text = name
    if number % 5 == 0:
        made.more["five"] = number
    encoded: bytes = made.SerializeToString(deterministic=True)
    return encoded


def values() -> list[bytes | None]:
    good = [event(number, name=b"plain %d" % number) for number in range(20)]
    bad_names = [event(number, name=b"\xff%d" % number) for number in range(20)]
    mixed = [value for pair in zip(good, bad_names, strict=True) for value in pair]
    return [*mixed, None, b"", b"\xff\xff", b"\x10\x01" + event(7, name=b"\xfe"), event(1 << 40, name=b"big")]


def archived_wrongly(stack: Stack, folder: Path, **settings: Any) -> tuple[Path, str, Path]:
    proto = folder / "event.proto"
    proto.write_text(WRONG)
    topic = stack.topic(PARTITIONS)
    part = {"format": "protobuf", "message": "t.Event", "proto": str(proto)}
    config = stack.config({topic: {"value": part, "key": part, **settings}})
    for turn in range(2):
        produce(stack, topic, turn)
        archive_once(config, topic, engine=InlineEngine())
    return config, topic, proto


def produce(stack: Stack, topic: str, turn: int) -> None:
    sent = values()
    keys = sent[7:] + sent[:7]
    stack.produce(
        topic,
        *(
            {
                "value": value,
                "key": key if number % 3 else b"%d" % turn,
                "partition": number % PARTITIONS,
                "timestamp": START + turn * DAY + number,
                "headers": [("n", b"%d" % number)] if number % 2 else None,
            }
            for number, (value, key) in enumerate(zip(sent, keys, strict=True))
        ),
    )
