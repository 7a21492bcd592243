"""Kafka's settings for one and three nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.errors import LocalStackError
from archiver.local import LocalStack, state
from archiver.local.kafka import Kafka, bootstrap_servers, broker_settings
from archiver.local.part import PartContext
from archiver.local.stack import parts_of
from archiver.local.state import StackState


def state_of(brokers: int) -> StackState:
    names = [name for part in parts_of(brokers) for name in part.port_names]
    ports = {name: 15_000 + number for number, name in enumerate(names)}
    return StackState(
        cluster_id="c", postgres_password="p", access_key="a", secret_key="s", ports=ports, brokers=brokers
    )


def test_one_node_is_named_and_placed_as_ever():
    part = Kafka()
    assert (part.name, part.title, part.port_names) == ("kafka", "Apache Kafka", ("kafka", "kafka-controller"))
    settings = broker_settings(state_of(1))
    copies = {key: value for key, value in settings.items() if "replication.factor" in key or "isr" in key}
    assert set(copies.values()) == {1}
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:15001"
    assert "replica.selector.class" not in settings
    assert bootstrap_servers(state_of(1)) == "127.0.0.1:15000"


def test_three_nodes_keep_three_copies_and_need_two():
    state = state_of(3)
    assert [part.name for part in parts_of(3)] == ["kafka-1", "kafka-2", "kafka-3", "seaweedfs", "postgres"]
    assert bootstrap_servers(state) == "127.0.0.1:15000,127.0.0.1:15002,127.0.0.1:15004"
    for node in (1, 2, 3):
        settings = broker_settings(state, node)
        assert settings["node.id"] == node
        assert settings["controller.quorum.voters"] == "1@127.0.0.1:15001,2@127.0.0.1:15003,3@127.0.0.1:15005"
        assert settings["transaction.state.log.replication.factor"] == 3
        assert settings["transaction.state.log.min.isr"] == 2
        assert settings["offsets.topic.replication.factor"] == 3
        assert settings["broker.rack"] == f"rack-{node}"


def test_a_node_is_started_again_where_another_moved(tmp_path: Path):
    existing, part = state_of(3), Kafka(node=2, nodes=3)
    context = PartContext(folder=tmp_path, log=tmp_path / "log", state=existing)
    assert not part.suits(context)
    text = "".join(f"{key}={value}\n" for key, value in broker_settings(existing, 2).items())
    (tmp_path / "server.properties").write_text(text)
    assert part.suits(context)
    moved = existing.with_ports({"kafka-3-controller": 15_999})
    assert not part.suits(PartContext(folder=tmp_path, log=tmp_path / "log", state=moved))


def test_a_stack_that_was_made_keeps_its_brokers(tmp_path: Path):
    local = LocalStack(tmp_path)
    with pytest.raises(LocalStackError, match="1 or 3 brokers, not 2"):
        local.up(brokers=2)
    (tmp_path / "logs").mkdir()
    state.save(tmp_path, state_of(1))
    with pytest.raises(LocalStackError, match="was made with 1 broker"):
        local.up(brokers=3)
    with pytest.raises(LocalStackError, match=r"no part `kafka-2`; it has kafka, seaweedfs, postgres"):
        local.down(only=["kafka-2"])


def test_a_stack_of_before_has_one_broker(tmp_path: Path):
    state.save(tmp_path, state_of(1))
    path = tmp_path / state.FILE_NAME
    path.write_text(path.read_text().replace(',\n  "brokers": 1', ""))
    assert '"brokers"' not in path.read_text()
    result = state.load(tmp_path)
    assert result is not None
    assert result.brokers == 1
