"""Group offsets are committed, or errors raised."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from archiver.errors import AccessDenied
from archiver.kafka import admin as admin_module
from archiver.kafka.admin import ClusterAdmin
from archiver.kafka.group_offsets import CommittedOffset


def admin_that_is_told(*codes: int | None) -> tuple[ClusterAdmin, list[Any]]:
    asked: list[Any] = []

    def alter(requests: list[Any], **_: object) -> dict[str, Future[Any]]:
        code = codes[len(asked)]
        asked.append(requests)
        answer: Future[Any] = Future()
        error = None if code is None else KafkaError(code)
        answer.set_result(SimpleNamespace(topic_partitions=[SimpleNamespace(partition=3, error=error)]))
        return {"g": answer}

    admin = ClusterAdmin({"bootstrap.servers": "127.0.0.1:1"})
    admin._client = SimpleNamespace(alter_consumer_group_offsets=alter)
    return admin, asked


def test_a_coordinator_that_is_loading_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_module, "_PAUSE", 0.0)
    admin, asked = admin_that_is_told(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR, None)
    admin.commit("g", "t", {3: CommittedOffset(offset=7)})
    assert len(asked) == 3


def test_an_error_of_a_partition_is_raised() -> None:
    admin, _ = admin_that_is_told(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(AccessDenied, match="READ on the group") as denied:
        admin.commit("g", "t", {3: CommittedOffset(offset=7)})
    assert denied.value.context["partition"] == 3
