"""What the producers are given to write: random messages of tests/producers' schemas, the same each time."""

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
    """Both .proto files and what they import."""
    files = FileDescriptorSet.FromString(compile_files(FOLDER, ("order.proto", "claim.proto"), FileDescriptorSet()))
    for file in files.file:
        file.ClearField("source_code_info")
    return files.SerializeToString(deterministic=True)


@cache
def descriptor(message: str) -> Descriptor:
    """A message type by its full name."""
    return find_descriptor(SourceSchema(descriptor_set=descriptor_set(), message=message))


def content(message: str) -> list[bytes]:
    """Messages as upb writes them; an OldOrder is given Orders, whose newer fields it doesn't know."""
    source = "producers.Order" if message == "producers.OldOrder" else message
    made = (random_message(seed, descriptor(source)) for seed in count())
    whole = (each.SerializeToString(deterministic=True) for each in made if each.IsInitialized())
    return list(islice(whole, COUNTS[message]))


def read_vector(producer: str) -> dict[str, list[bytes]]:
    """What a producer wrote, by message type."""
    lines = lzma.decompress((VECTORS / f"{producer}.txt.xz").read_bytes()).decode("ascii").splitlines()
    found: dict[str, list[bytes]] = {}
    for line in lines:
        message, _, data = line.partition(" ")
        found.setdefault(message, []).append(bytes.fromhex(data))
    return found


def write_vector(producer: str, written: dict[str, list[bytes]]) -> None:
    """Keep what a producer wrote."""
    text = "".join(f"{message} {data.hex()}\n" for message, values in written.items() for data in values)
    (VECTORS / f"{producer}.txt.xz").write_bytes(lzma.compress(text.encode("ascii"), preset=9))
