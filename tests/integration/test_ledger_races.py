"""Two archivers meet 200 new schemas at once."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier
from uuid import UUID

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.ledger import DeclaredColumns
from schema_mapping.columns.ledger import LAST_FIXED_ID
from schema_mapping.protobuf.descriptors import SourceSchema
from tests.support.engine.forked import FORKED
from tests.support.servers.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROUNDS = 200
Ids = dict[tuple[str, tuple[int, ...]], int]


def grown(fields: int) -> SourceSchema:
    file = FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    message = file.message_type.add(name="M")
    for number in range(1, fields + 1):
        label = FieldDescriptorProto.LABEL_OPTIONAL if number % 5 else FieldDescriptorProto.LABEL_REPEATED
        message.field.add(name=f"f{number}", number=number, label=label, type=FieldDescriptorProto.TYPE_INT64)
    return SourceSchema(descriptor_set=FileDescriptorSet(file=[file]).SerializeToString(), message="t.M")


def archive(dsn: str, topic: TopicRow, meet: Barrier, seen: multiprocessing.Queue[list[tuple[int, Ids]]]) -> None:
    assigned = []
    with Registry(dsn, connections=1) as registry:
        for fields in range(1, ROUNDS + 1):
            schema = grown(fields)
            meet.wait(60)
            assignment = registry.ledger.assign(topic, DeclaredColumns(key=None, value=schema), table=None)
            ids: Ids = {(entry.root, entry.path): entry.field_id for entry in assignment.state.entries}
            assigned.append((assignment.version, ids))
    seen.put(assigned)


def test_two_archivers_agree_two_hundred_times(stack: Stack) -> None:
    dsn = stack.database()
    meet, seen = FORKED.Barrier(2), FORKED.Queue()
    with Registry(dsn) as registry:
        topic = registry.topics.register(cluster_id="c", topic="t", topic_id=UUID(int=1), table="kafka.t")
        rivals = [FORKED.Process(target=archive, args=(dsn, topic, meet, seen)) for _ in range(2)]
        for rival in rivals:
            rival.start()
        first, second = seen.get(timeout=500), seen.get(timeout=500)
        for rival in rivals:
            rival.join(60)
        state = registry.ledger.load(topic)
        history = registry.ledger.history(topic)
    assert [version for version, _ in first] == [version for version, _ in second] == list(range(1, ROUNDS + 1))
    assert first == second
    ids = sorted(entry.field_id for entry in state.entries)
    assert ids == list(range(LAST_FIXED_ID + 1, LAST_FIXED_ID + 1 + len(ids)))
    assert len(ids) == ROUNDS + ROUNDS // 5 + 6  # fields, elements, and our own columns
    assert state.last_id == ids[-1]
    assert [revision.version for revision in history] == list(range(1, ROUNDS + 1))
    assert sum(len(revision.changes) for revision in history[1:]) == ROUNDS - 1
