"""The code on the pages of engines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.config import load_config
from tests.support.archive.job_runs import archive_once
from tests.support.schemas.order_schema import ORDER_PROTO, order_class
from tests.support.servers.stack import Stack

DOCS = Path(__file__).parents[3] / "docs"
FIRST_QUERIES = "Three first queries"
START = 1_767_229_200_000
"""2026-01-01T01:00:00Z"""
HOUR = 3_600_000
NOT_JSON = (b"", b"not json \xff", b'{"page":')


@dataclass(frozen=True, slots=True)
class Block:
    heading: str
    language: str
    marks: frozenset[str]
    code: str

    @property
    def statements(self) -> list[str]:
        text = re.sub(r"^--.*$", "", self.code, flags=re.MULTILINE)
        return [statement for item in text.split(";") if (statement := item.strip())]


def read_blocks(*pages: str) -> list[Block]:
    text = "\n".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    parts = re.split(r"^##+ (.*)$", text, flags=re.MULTILINE)
    fence = re.compile(r"^```(\w+)([ \w]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        Block(heading, language, frozenset(marks.split()), code)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
        for language, marks, code in fence.findall(text)
    ]


def archive_documented(stack: Stack, folder: Path) -> dict[str, str]:
    proto = folder / "order.proto"
    proto.write_text(ORDER_PROTO)
    topics = {
        "clicks": stack.topic(2),
        "orders": stack.topic(2),
        "audit": stack.topic(1, {"message.timestamp.type": "LogAppendTime"}),
    }
    stack.produce(topics["clicks"], *clicks())
    stack.produce(topics["orders"], *orders())
    stack.produce(topics["audit"], *({"value": b"seen", "timestamp": START + number} for number in range(3)))
    value = {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}
    config = stack.config({topics["clicks"]: {}, topics["orders"]: {"value": value}, topics["audit"]: {}})
    archive_once(config, *topics.values())
    loaded = load_config(config)
    return {name: loaded.topic(topic).table for name, topic in topics.items()}


def clicks() -> Iterator[dict[str, Any]]:
    for number in range(60):
        page = ("/", "/buy", "/help")[number % 3]
        yield {
            "key": f"u{number % 5}",
            "value": f'{{"page": "{page}", "ms": {number}}}',
            "partition": number % 2,
            "timestamp": START + number * HOUR,
            "headers": [("trace", f"t{number % 2}"), ("trace", "again")],
        }
    for number, (key, value) in enumerate(zip(("u1", "", None), NOT_JSON, strict=True)):
        yield {"key": key, "value": value, "partition": 0, "timestamp": START + number * HOUR}
    yield {"key": "u2", "value": None, "partition": 1, "timestamp": START}


def orders() -> Iterator[dict[str, Any]]:
    for number in range(40):
        yield {"key": f"o{number % 7}", "value": order(number), "partition": number % 7 % 2}
    nested = order_class()(id=53, address={"city": "Bern"}).SerializeToString()
    odd = [
        None,
        b"",
        b"\xff\xff",
        order(50) + b"\xfa\x01\x03new",
        order(51)[2:] + order(51)[:2],
        order(52)[:-1],
        nested[:2] + b"\x32\x08" + nested[4:] + b"\x78\x01",
    ]
    for number, value in enumerate(odd):
        yield {"key": f"o{number}", "value": value, "partition": number % 2}


def order(number: int) -> bytes:
    city = ("Zürich", "Bern")[number % 2]
    encoded: bytes = order_class()(id=number, customer=f"c{number % 4}", address={"city": city}).SerializeToString()
    return encoded


BROKEN: Mapping[bytes, str] = {b"\xff\xff": "truncated@0", order(52)[:-1]: "truncated@7"}
"""Values that are no messages, and what is wrong with them."""


def named(text: str, tables: Mapping[str, str]) -> str:
    return re.sub(r"\bkafka\.(clicks|orders|audit)\b", lambda match: tables[match[1]], text)


def first_rows() -> list[list[tuple[Any, ...]]]:
    ends: dict[int, int] = {}
    broken = []
    for message in orders():
        partition = message["partition"]
        if (error := BROKEN.get(message["value"] or b"")) is not None:
            broken.append((partition, ends[partition], error))
        ends[partition] = ends.get(partition, 0) + 1
    records = [(partition, end, end - 1) for partition, end in sorted(ends.items())]
    return [records, [("Bern", 22), ("Zürich", 21)], sorted(broken)]
