"""Published schemas of PyPI packages (tests/vectors/real_schemas)."""

from __future__ import annotations

import lzma
import random
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from schema_mapping.protobuf.descriptors import message_names

FOLDER = Path(__file__).parents[2] / "vectors" / "real_schemas"
PACKAGES = tuple(sorted(path.name.removesuffix(".binpb.xz") for path in FOLDER.glob("*.binpb.xz")))


@cache
def protos(package: str) -> Mapping[str, FileDescriptorProto]:
    data = lzma.decompress((FOLDER / f"{package}.binpb.xz").read_bytes())
    return {file.name: file for file in FileDescriptorSet.FromString(data).file}


@cache
def messages(package: str, *, shuffled: bool = False) -> Mapping[str, Descriptor]:
    """Has no map entries. `shuffled` permutes declarations."""
    pool = DescriptorPool()
    added: set[str] = set()
    result: dict[str, Descriptor] = {}
    for file in protos(package).values():
        _add(pool, package, file, added, shuffled=shuffled)
        result |= {name: pool.FindMessageTypeByName(name) for name in message_names(file)}
    return dict(sorted(result.items()))


def _add(pool: DescriptorPool, package: str, file: FileDescriptorProto, added: set[str], *, shuffled: bool) -> None:
    if file.name in added:
        return
    added.add(file.name)
    for name in file.dependency:
        _add(pool, package, _imported(package, name), added, shuffled=shuffled)
    pool.Add(_shuffled(file) if shuffled else file)


def _shuffled(file: FileDescriptorProto) -> FileDescriptorProto:
    result = FileDescriptorProto()
    result.CopyFrom(file)
    chosen = random.Random(file.name)
    pending: list[Any] = [result.message_type]
    while pending:
        declared = pending.pop()
        _reorder(declared, chosen)
        for message in declared:
            if not message.options.map_entry:
                _reorder(message.field, chosen)
            pending.append(message.nested_type)
    return result


def _reorder(declared: Any, chosen: random.Random) -> None:
    items = list(declared)
    chosen.shuffle(items)
    del declared[:]
    declared.extend(items)


def _imported(package: str, name: str) -> FileDescriptorProto:
    for value in (package, *PACKAGES):
        if name in protos(value):
            return protos(value)[name]
    module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
