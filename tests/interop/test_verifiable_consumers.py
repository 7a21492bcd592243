"""Kafka's VerifiableConsumer at a served archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archive.job_runs import archive_once
from tests.support.clients.verifiable_consumers import PROTOCOLS, VerifiableConsumers, waited
from tests.support.servers.serve_nodes import Nodes
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.interop

PARTITIONS = 6
RECORDS = 300_000
AT_ONCE = 20
SETTLES_S = 40.0
SERVE = {"refresh": "1s", "group_heartbeat": "500ms", "group_session": "6s"}
ENDS = dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)


@pytest.fixture(scope="module")
def topic(stack: Stack) -> str:
    made = stack.topic(PARTITIONS)
    stack.produce(made, *({"value": b"%d" % number, "partition": number % PARTITIONS} for number in range(RECORDS)))
    return made


@pytest.fixture(scope="module")
def nodes(stack: Stack, topic: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    config = stack.config({topic: {}}, serve=SERVE)
    archive_once(config)
    with Nodes(config, 1, log=tmp_path_factory.mktemp("nodes") / "server.log") as running:
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_groups_survive_lost_members_and_a_new_coordinator(
    nodes: Nodes, topic: str, tmp_path: Path, protocol: str
) -> None:
    with VerifiableConsumers(
        tmp_path, bootstrap=nodes.bootstrap, topic=topic, group=unique("group"), protocol=protocol, at_once=AT_ONCE
    ) as group:

        def settle(when: str) -> None:
            assert waited(lambda: group.shares(PARTITIONS), SETTLES_S), (
                f"{when}: partitions aren't shared: {group.view()}"
            )
            assert group.has_read(ENDS) or group.get_records(SETTLES_S), f"{when}: not all get records: {group.view()}"

        first, second, third = (group.join() for _ in range(3))
        settle("after three joined")
        group.kill(first)
        settle("after one was killed")
        fourth = group.join()
        settle("after one more joined")
        group.pause(second)
        settle("while one is suspended")
        group.go_on(second)
        settle("after it went on")
        before = group.judge.assignments
        nodes.kill(0)
        nodes.start(0)
        assert waited(lambda: group.judge.assignments >= before + 3, SETTLES_S), "not all joined again"
        settle("after the coordinator began anew")
        group.leave(third)
        settle("after one left")
        group.leave(fourth)
        settle("with one left")
        group.leave(second)
    assert group.judge.wrong == []
    assert sum(group.judge.committed.values()) > PARTITIONS * AT_ONCE
    assert group.judge.lost() == []
