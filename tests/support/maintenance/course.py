"""Another engine's operation on a table, then the archiver's commands, judged by Kafka's consumer."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.replay import ReplayConsumer
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.reprocess.row_filter import Reach, RowFilter
from schema_mapping.errors import ContextError
from tests.support.archive.job_runs import archive_once, run, without_registry
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.maintenance.operations import ROWS, Effect, Operation
from tests.support.schemas.order_schema import ORDER_PROTO, order_bytes
from tests.support.servers.stack import Stack

PARTITIONS: Final = 2
TURNS: Final = 3
IDENTICAL: Final = "identical"
OK: Final = "ok"
NOTHING: Final = "nothing"
_BEGUN: Final = 5
_DAY_MS: Final = 86_400_000

Execute = Callable[[str], Any]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Steps are `ok`, `identical`, `nothing`, a count, or an error's name."""

    engine: str
    operation: str
    effect: str
    beside: bool
    rows: dict[str, int] = field(default_factory=dict)
    engine_error: str | None = None
    replay: str = ""
    replay_in_progress: str = ""
    told: str = ""
    told_rows: int = 0
    archiving: str = ""
    mended_by: str = NOTHING
    archiving_after: str = ""
    replay_after: str = ""
    replay_after_orphans: str = ""
    replay_after_reprocess: str = ""
    status_after_rebuild: str = ""


@dataclass(slots=True, kw_only=True)
class Course:
    """Two schema versions and odd values, in three commits."""

    stack: Stack
    folder: Path
    operation: Operation
    execute: Execute
    noise: random.Random = field(default_factory=lambda: random.Random(7))
    topic: str = ""
    config: Path = Path()
    _kafka: list[Seen] = field(default_factory=list)

    def play(self) -> Outcome:
        operation = self.operation
        seen = Outcome(
            engine=operation.engine, operation=operation.name, effect=str(operation.effect), beside=operation.beside
        )
        self._archive()
        before = self._sent()
        assert len(before) == ROWS * PARTITIONS
        with self._begun() as rest:
            with self._archiving() if operation.beside else _still():
                seen.engine_error = self._operate()
            seen.replay_in_progress = _attempt(rest)
        seen.rows = {"before": len(before), "after": self._live(before)}
        seen.replay = self._replay()
        self._produce()
        seen.archiving = self._run()
        seen.told, seen.told_rows = self._status()  # the run compares rows that other engines may have altered
        if operation.effect is not Effect.UPGRADES:
            seen.mended_by = self._mend()
            seen.archiving_after = self._run()
            seen.replay_after = self._replay_of_all()
        if operation.effect is not Effect.UPGRADES and not operation.beside:
            Orphans(load_config(self.config), [self.topic], older_than=0, deletes=True).run()
            seen.replay_after_orphans = self._replay_of_all()
            self._reprocess()
            seen.replay_after_reprocess = self._replay_of_all()
            fresh = without_registry(self.stack, self.config, with_journal=True)
            Rebuild(load_config(fresh), [self.topic]).run()
            seen.status_after_rebuild = self._status(fresh)[0]
        return seen

    def _archive(self) -> None:
        proto = self.folder / "order.proto"
        proto.write_text(ORDER_PROTO.replace("  bytes token = 10;\n", ""))
        self.topic = self.stack.topic(PARTITIONS)
        value = {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}
        source = "flat" if self.operation.is_flat else "nested"
        topics = {self.topic: {"value": value, "partition_source": source}}
        self.config = self.stack.config(topics, archive={"orphan_grace": "0s"})
        for _ in range(TURNS):
            self._produce()
            archive_once(self.config, self.topic, engine=InlineEngine())
            proto.write_text(ORDER_PROTO)

    def _produce(self) -> None:
        values = [order_bytes(self.noise) for _ in range(30)] + [None, b"", b"\xff", self.noise.randbytes(30)]
        self.stack.produce(
            self.topic,
            *(
                {
                    "key": f"k{number}" if number % 3 else None,
                    "value": value,
                    "partition": number % PARTITIONS,
                    "timestamp": 1_700_000_000_000 + number // PARTITIONS % 2 * _DAY_MS,
                    "headers": [("h", b"1")] if number % 2 else None,
                }
                for number, value in enumerate(values)
            ),
        )
        self._kafka = []

    @property
    def table(self) -> str:
        return load_config(self.config).topic(self.topic).table

    def _operate(self) -> str | None:
        loaded = self.stack.catalog().load_table(self.table)
        first, second, third = (snapshot.snapshot_id for snapshot in loaded.metadata.snapshots[:TURNS])
        for statement in self.operation.statements:
            text = statement.format(table=self.table, first=first, second=second, third=third, bucket=self.stack.bucket)
            for left in (3, 2, 1, 0):
                try:
                    self.execute(text)
                except Exception as error:  # noqa: BLE001 - whatever the engine's client raises
                    if left and self.operation.beside:  # an engine may lose the race against a commit
                        time.sleep(0.2)
                        continue
                    return _short(str(error))
                break
        return None

    @contextmanager
    def _archiving(self) -> Iterator[None]:
        ended, failures = threading.Event(), list[BaseException]()

        def work() -> None:
            try:
                while True:
                    is_last = ended.is_set()
                    self._produce()
                    run(self.config, self.topic, engine=InlineEngine())
                    if is_last:
                        return
            except BaseException as error:  # noqa: BLE001 - raised again by who waits
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        assert not failures, failures

    @contextmanager
    def _begun(self) -> Iterator[Callable[[], str]]:
        expected = [item for item in self._sent() if item.partition == 0]
        with ReplayConsumer(load_config(self.config), {}) as consumer:
            consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
            got = list(consumer.consume(_BEGUN, 10.0))

            def rest() -> str:
                while len(got) < len(expected) and (more := consumer.consume(1_000, 2.0)):
                    assert all(item.error() is None for item in more)
                    got.extend(more)
                seen = [(record.offset(), record.key(), record.value()) for record in got][: len(expected)]
                whole = [(record.offset, record.key, record.value) for record in expected]
                left = [value for value in whole if not self.operation.gone(0, value[0])]
                return IDENTICAL if seen == whole or (left and seen == left) else f"{len(seen)} of {len(whole)} records"

            yield rest

    def _sent(self) -> list[Seen]:
        if not self._kafka:
            self._kafka = from_kafka(self.stack, self.topic, PARTITIONS)
        return self._kafka

    def _left(self, records: Sequence[Seen]) -> list[Seen]:
        gone = self.operation.gone
        return [record for record in records if record.offset >= ROWS or not gone(record.partition, record.offset)]

    def _live(self, before: Sequence[Seen]) -> int:
        try:
            rows = self.stack.catalog().load_table(self.table).scan(selected_fields=("kafka",)).to_arrow()
        except Exception:  # noqa: BLE001 - pyiceberg can't read what some operations leave
            return -1
        places = [(value["partition"], value["offset"]) for value in rows.column("kafka").to_pylist()]
        existing = {(record.partition, record.offset) for record in before}
        return sum(value in existing for value in places)

    def _replay(self) -> str:
        return _attempt(lambda: self._compared(lambda: self._left(self._archived())))

    def _replay_of_all(self) -> str:
        return _attempt(lambda: self._compared(self._sent))

    def _archived(self) -> list[Seen]:
        offsets = json.loads(self.stack.catalog().load_table(self.table).properties["archiver.offsets"])
        records = self._sent()
        return [record for record in records if record.offset < offsets[str(record.partition)][0]]

    def _compared(self, expected: Callable[[], list[Seen]]) -> str:
        given = from_archive(self.config, self.topic, PARTITIONS)
        records = expected()
        if given == records:
            return IDENTICAL
        places = [(record.partition, record.offset) for record in given]
        return (
            "altered" if places == [(record.partition, record.offset) for record in records] else "missing or doubled"
        )

    def _status(self, config: Path | None = None) -> tuple[str, int]:
        done = CliRunner().invoke(app, ["status", self.topic, "--json", "--config", str(config or self.config)])
        (result,) = json.loads(done.stdout)["topics"]
        problem = result["problem"]
        assert (problem is None) == (done.exit_code == 0)
        rows = sum(value["rows"] for value in result["holes"] or result["altered"])
        return (problem["kind"], rows) if problem else (NOTHING, rows)

    def _run(self) -> str:
        report = run(self.config, self.topic, engine=InlineEngine())
        failures = {type(error).__name__ for topic in report.topics for _, error in topic.failures}
        return ", ".join(sorted(failures)) or OK

    def _mend(self) -> str:
        """Follow the advice: the error's DELETE statements, then a refill."""
        advice = ""
        if self.operation.effect is Effect.ALTERS:
            report = run(self.config, self.topic, engine=InlineEngine())
            errors = [error for topic in report.topics for _, error in topic.failures]
            for statement in re.findall(r"DELETE FROM [^;\[]+", str(errors[0])):
                name, _, condition = statement.removeprefix("DELETE FROM ").partition(" WHERE ")
                quoted = (
                    condition.strip()
                    .replace("kafka.partition", 'kafka."partition"')
                    .replace("kafka.offset", 'kafka."offset"')
                )
                plain = condition.strip() if self.operation.engine == "Spark" else quoted
                self.execute(f"DELETE FROM lake.{name} WHERE {plain}")
            advice = "DELETE, "
        done = RefillJob(load_config(self.config), self.topic, engine=InlineEngine()).run()
        fates = sorted({item.fate.value for item in done.mended})
        return f"{advice}refill ({', '.join(fates)})" if fates else advice or NOTHING

    def _reprocess(self) -> None:
        expected = RowFilter(reach=Reach.UNRECOGNIZED)
        done = Reprocess(load_config(self.config), self.topic, expected, engine=InlineEngine()).run()
        assert done.succeeded, done.failures


@contextmanager
def _still() -> Iterator[None]:
    yield


def _attempt(look: Callable[[], str]) -> str:
    try:
        return look()
    except ContextError as error:
        return type(error).__name__


def _short(text: str) -> str:
    return text.strip().splitlines()[0][:200]
