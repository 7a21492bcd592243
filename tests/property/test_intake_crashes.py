"""Kills, power cuts and disk errors of the intake."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import currently_in_test_context, event, given
from hypothesis import strategies as st

from archiver.errors import BatchGap, ClientFenced, IntakeEnded, IntakeError, IntakeFull
from archiver.intake.batches import Acknowledgement
from archiver.intake.files_turn import write_turn
from archiver.intake.segments import LogSurvey
from archiver.intake.state import IntakeState, covered_state
from archiver.intake.topic_log import LogLimits, TopicLog
from tests.support.intake.batches import batch_of
from tests.support.intake.lossy_disk import LossyDisk, PowerCut
from tests.support.intake.memory_archive import MemoryArchive

PARTITIONS = 3
LIMITS = LogLimits(wal_bytes=64 << 10, segment_bytes=4 << 10)

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2), st.integers(1, 3), st.integers(0, 1 << 16)),
        st.tuples(st.just("repeat"), st.integers(0, 2), st.integers(1, 5), st.just(0)),
        st.tuples(st.just("fence"), st.integers(0, 2), st.just(0), st.just(0)),
        st.tuples(st.just("turn"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("end"), st.just(0), st.integers(0, 1), st.just(0)),
    ),
    min_size=1,
    max_size=14,
)
FAULTS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["power", "kill", "error"])), max_size=4)


@dataclass
class Client:
    name: str
    incarnation: int = 0
    batches: list[dict[int, list[bytes]]] = field(default_factory=list)
    answers: dict[int, Acknowledgement] = field(default_factory=dict)

    def new_batch(self, seed: int) -> None:
        chosen = Random(seed)
        number = len(self.batches)
        rows = [f"{self.name}:{number}:{row}".encode() for row in range(chosen.randint(0, 40))]
        parts: dict[int, list[bytes]] = {}
        for row in rows:
            parts.setdefault(chosen.randrange(PARTITIONS), []).append(row)
        self.batches.append(parts)

    def take(self, outcome: Acknowledgement) -> None:
        assert self.answers.setdefault(outcome.batch_id, outcome) == outcome


class World:
    def __init__(self, faults: list[tuple[int, str]], chosen: Random) -> None:
        self.chosen = chosen
        self.faults = [(steps + 1, fault) for steps, fault in faults]
        self.disk = LossyDisk(step=self.step)
        self.archive = MemoryArchive(step=self.step)
        self.clients = [Client("a"), Client("b"), Client("c")]
        self.epoch = 0
        self.log: TopicLog | None = None
        self.is_cut = False
        self.faults_left: list[tuple[int, str]] = []

    def step(self, name: str) -> None:
        if not self.faults:
            return
        left, fault = self.faults[0]
        if left > 1:
            self.faults[0] = (left - 1, fault)
            return
        self.faults.pop(0)
        if currently_in_test_context():
            event(f"{fault} at {name}")
        if fault == "error" and name in ("create", "write", "sync", "rename", "sync_folder"):
            raise OSError(errno.ENOSPC if name == "create" else errno.EIO, "the disk failed")
        self.is_cut = fault == "power"
        raise PowerCut

    def run(self, action: Callable[[TopicLog], None]) -> None:
        try:
            action(self.opened())
        except PowerCut:
            if self.is_cut:
                self.disk.cut_power(self.chosen.randrange)
            self.log = None
        except IntakeEnded:
            self.log = None  # the server is started again, on the same machine
        except IntakeError:
            self.log = None  # the disk failed while the log was opened or read
        self.check_covered()

    def opened(self) -> TopicLog:
        if self.log is None:
            survey = LogSurvey.read(self.disk, topic="t", most_clients=10)
            self.epoch += 1
            log = TopicLog(self.disk, topic="t", log_id=survey.log_id, epoch=self.epoch, limits=LIMITS, clock=lambda: 1)
            log.begin(survey)
            self.log = log
        return self.log

    def send(self, log: TopicLog, client: Client, ids: list[int]) -> None:
        batches = [
            batch_of(client.name, number, client.batches[number], incarnation=client.incarnation) for number in ids
        ]
        sent_as = client.incarnation
        for outcome in log.append(batches):
            if isinstance(outcome, Acknowledgement):
                client.take(outcome)
            elif isinstance(outcome, ClientFenced):  # by its own fence, whose answer was lost
                client.incarnation = log.position(client.name).incarnation
                assert client.incarnation > sent_as
            else:
                assert isinstance(outcome, (IntakeFull, BatchGap)), outcome

    def fence(self, log: TopicLog, client: Client) -> None:
        position = log.fence(client.name)
        if not isinstance(position, IntakeError):
            client.incarnation = position.incarnation

    def end(self, *, with_power: bool) -> None:
        """Kill the process, with or without the machine."""
        if with_power:
            self.disk.cut_power(self.chosen.randrange)
        self.log = None

    def finish(self) -> None:
        self.faults_left, self.faults = self.faults, []
        for _ in range(50):
            left = [client for client in self.clients if len(client.answers) < len(client.batches)]
            if not left:
                break
            for client in left:
                client.incarnation = self.opened().position(client.name).incarnation
                ids = [number for number in range(len(client.batches)) if number not in client.answers]
                self.run(lambda log, client=client, ids=ids: self.send(log, client, ids))
            self.run(self.turn)
        self.run(self.turn)

    def turn(self, log: TopicLog) -> None:
        write_turn(log, self.archive, topic="t")

    def check_covered(self) -> None:
        ends = self.archive.accepted_ends()
        kept = IntakeState.from_json(covered_state(self.archive.states, ends), most_clients=10)
        assert {partition: end for partition, end in kept.next_offsets.items() if end} == ends
        rows = [
            row
            for range_ in (*self.archive.table, *self.archive.staged.values())
            for file in range_.files
            for _, row in self.archive.objects[file.path]
        ]
        for client in self.clients:
            sent = [
                row
                for batch in client.batches[: kept.clients.position(client.name).next_batch_id]
                for part in batch.values()
                for row in part
            ]
            assert sorted(row for row in rows if row.startswith(f"{client.name}:".encode())) == sorted(sent)

    def judge(self) -> None:
        for partition in range(PARTITIONS):
            values = self.archive.values(partition)
            for client in self.clients:
                sent = [row for batch in client.batches for row in batch.get(partition, [])]
                assert [value for value in values if value.startswith(f"{client.name}:".encode())] == sent
                for number, batch in enumerate(client.batches):
                    for part in client.answers[number].parts:
                        if part.partition == partition:
                            assert values[part.base_offset : part.end_offset] == batch[partition]
        assert self.log is not None
        assert self.log.next_offsets == {partition: end for partition, end in self.archive.ends.items() if end}


@given(actions=ACTIONS, faults=FAULTS, seed=st.integers(0, 1 << 32))
def test_acknowledged_rows_reach_the_table_once(
    actions: list[tuple[str, int, int, int]], faults: list[tuple[int, str]], seed: int
) -> None:
    world = World(faults, Random(seed))
    for kind, who, count, value in actions:
        client = world.clients[who]
        match kind:
            case "send":
                for number in range(count):
                    client.new_batch(value + number)
                ids = list(range(len(client.batches) - count, len(client.batches)))
                world.run(lambda log, client=client, ids=ids: world.send(log, client, ids))
            case "repeat":
                ids = list(range(max(0, len(client.batches) - count), len(client.batches)))
                world.run(lambda log, client=client, ids=ids: world.send(log, client, ids))
            case "fence":
                world.run(lambda log, client=client: world.fence(log, client))
            case "turn":
                world.run(world.turn)
            case _:
                world.end(with_power=bool(count))
    world.finish()
    world.judge()


def scenario(world: World) -> None:
    for round_ in range(2):
        for client in world.clients:
            for seed in range(3):
                client.new_batch(10 * round_ + seed)
            ids = list(range(len(client.batches) - 3, len(client.batches)))
            world.run(lambda log, client=client, ids=ids: world.send(log, client, ids))
        world.run(world.turn)
        world.run(lambda log, client=world.clients[round_]: world.fence(log, client))
        world.run(lambda log, ids=[round_]: world.send(log, world.clients[2], ids))
    world.end(with_power=True)
    world.finish()
    world.judge()


def steps_of_scenario() -> int:
    world = World([(1 << 30, "power")], Random(0))
    scenario(world)
    (left, _) = world.faults_left[0]
    return (1 << 30) + 1 - left


@pytest.mark.parametrize("fault", ["power", "kill", "error"])
def test_each_step_may_be_the_last(fault: str) -> None:
    for step in range(steps_of_scenario()):
        scenario(World([(step, fault)], Random(step)))
