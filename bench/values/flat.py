"""Messages without sub-messages: 120 fields, two fields, long texts, packed runs."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import Descriptor

from values.proto3 import message_type

KINDS = ("INT64", "STRING", "INT32", "DOUBLE", "BOOL", "UINT32", "SINT64", "FLOAT", "STRING", "FIXED64")
WIDE = " ".join(f"f{number}:{number}:{KINDS[number % len(KINDS)]}" for number in range(1, 121))
TEXT = "the archive keeps every record of the log as it came and gives it back byte for byte to whoever asks"
WORDS = tuple(TEXT.split())


def wide_type() -> Descriptor:
    return message_type("wide", {"Row": WIDE})


def wide(draw: random.Random, index: int) -> dict[str, Any]:
    return {
        f"f{number}": _scalar(draw, KINDS[number % len(KINDS)], index)
        for number in range(1, 121)
        if draw.random() < 0.67
    }


def _scalar(draw: random.Random, kind: str, index: int) -> Any:
    match kind:
        case "STRING":
            return " ".join(draw.choices(WORDS, k=draw.randrange(1, 4)))
        case "DOUBLE" | "FLOAT":
            return draw.random() * 1000
        case "BOOL":
            return draw.random() < 0.5
        case "SINT64":
            return draw.randrange(-100_000, 100_000)
        case "FIXED64" | "INT64":
            return 1_700_000_000_000 + index * 37
    return int(draw.expovariate(0.001))


def tiny_type() -> Descriptor:
    return message_type("tiny", {"View": "user:1:INT64 page:2:STRING"})


def tiny(draw: random.Random, _index: int) -> dict[str, Any]:
    return {"user": draw.randrange(1, 10**7), "page": f"/{draw.choice(WORDS)}/{draw.randrange(1000)}"}


def texts_type() -> Descriptor:
    return message_type("texts", {"Line": "host:1:STRING text:2:STRING"})


def texts(draw: random.Random, _index: int) -> dict[str, Any]:
    return {"host": f"host-{draw.randrange(100)}", "text": " ".join(draw.choices(WORDS, k=draw.randrange(200, 1000)))}


def runs_type() -> Descriptor:
    return message_type("runs", {"Vector": "values:1*:DOUBLE weights:2*:FLOAT places:3*:INT32 times:4*:SINT64"})


def runs(draw: random.Random, _index: int) -> dict[str, Any]:
    return {
        "values": [draw.gauss(0, 1) for _ in range(256)],
        "weights": [draw.random() for _ in range(256)],
        "places": [draw.randrange(50_000) for _ in range(256)],
        "times": [draw.randrange(-1000, 1000) for _ in range(256)],
    }
