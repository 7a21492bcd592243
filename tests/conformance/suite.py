"""Payloads of Google's conformance suite."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor

from schema_mapping.protobuf.descriptors import SourceSchema, find_descriptor

FOLDER = Path(__file__).parents[1] / "vectors" / "conformance"
DESCRIPTORS = FOLDER / "messages.binpb.xz"
PAYLOADS = FOLDER / "payloads.json.xz"


class Payload(NamedTuple):
    """A binary payload, `accepted` by upb when it was recorded."""

    message: str
    data: bytes
    accepted: bool


@cache
def descriptor(message: str) -> Descriptor:
    return find_descriptor(SourceSchema(descriptor_set=lzma.decompress(DESCRIPTORS.read_bytes()), message=message))


def read_payloads() -> tuple[Payload, ...]:
    kept = json.loads(lzma.decompress(PAYLOADS.read_bytes()))
    return tuple(
        Payload(message, base64.b64decode(data), accepted)
        for message, payloads in kept.items()
        for data, accepted in payloads
    )


def write_payloads(payloads: Iterable[Payload]) -> None:
    kept: dict[str, list[tuple[str, bool]]] = {}
    for payload in sorted(payloads):
        kept.setdefault(payload.message, []).append((base64.b64encode(payload.data).decode(), payload.accepted))
    PAYLOADS.write_bytes(lzma.compress(json.dumps(kept, separators=(",", ":")).encode(), preset=9))
