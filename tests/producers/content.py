"""Random but repeatable messages for the producers."""

from __future__ import annotations

import lzma
from functools import cache
from itertools import count, islice
from pathlib import Path

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from archiver.schemas.protobuf.schema_files import compile_files
from schema_mapping.protobuf.descriptors import SourceSchema, find_descriptor
from tests.support.schemas.random_messages import random_message

FOLDER = Path(__file__).parent
VECTORS = FOLDER.parent / "vectors" / "producers"
COUNTS = {"producers.Order": 60, "producers.Claim": 60, "producers.OldOrder": 20, "producers.Scattered": 40}


@cache
def descriptor_set() -> bytes:
    files = FileDescriptorSet.FromString(compile_files(FOLDER, ("order.proto", "claim.proto"), FileDescriptorSet()))
    for file in files.file:
        file.ClearField("source_code_info")
    return files.SerializeToString(deterministic=True)


@cache
def descriptor(message: str) -> Descriptor:
    return find_descriptor(SourceSchema(descriptor_set=descriptor_set(), message=message))


def content(message: str) -> list[bytes]:
    """Return upb's messages; an OldOrder is an Order with unknown newer fields."""
    source = "producers.Order" if message == "producers.OldOrder" else message
    made = (random_message(seed, descriptor(source)) for seed in count())
    whole = (instance.SerializeToString(deterministic=True) for instance in made if instance.IsInitialized())
    return list(islice(whole, COUNTS[message]))


def read_vector(producer: str) -> dict[str, list[bytes]]:
    lines = lzma.decompress((VECTORS / f"{producer}.txt.xz").read_bytes()).decode("ascii").splitlines()
    payloads: dict[str, list[bytes]] = {}
    for line in lines:
        message, _, data = line.partition(" ")
        payloads.setdefault(message, []).append(bytes.fromhex(data))
    return payloads


def write_vector(producer: str, written: dict[str, list[bytes]]) -> None:
    text = "".join(f"{message} {data.hex()}\n" for message, values in written.items() for data in values)
    (VECTORS / f"{producer}.txt.xz").write_bytes(lzma.compress(text.encode("ascii"), preset=9))
