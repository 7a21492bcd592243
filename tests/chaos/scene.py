"""A history's topic, archive, commands, engines and producers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Final

from pyiceberg.table import Table
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.table.update import AssertTableUUID, SetSnapshotRefUpdate, UpgradeFormatVersionUpdate

from archiver.fault_points import VARIABLE
from tests.chaos.acts import Plan, Verb, Writer
from tests.chaos.commands import Commands
from tests.chaos.duckdb_files import written_by_duckdb
from tests.chaos.other_engine import OtherEngine, Write, written_by_arrow
from tests.chaos.polars_files import written_by_polars
from tests.chaos.processes import said_by_process
from tests.chaos.said import Said, said_by
from tests.chaos.spark_engine import SparkOtherEngine
from tests.fault.soak.scene import Ground
from tests.support.archive import partitioned
from tests.support.archive.readers import Seen, from_kafka, wait_until_decided
from tests.support.catalog.lossy_catalog import Fault
from tests.support.servers.stack import Stack
from tests.support.storage.lossy_objects import ObjectFault

START: Final = 1_767_225_600_000
"""All records are of one day, so that files of any Kafka partitions can be put together."""
_TERMS: Final = (["day"], ["month"], ["day", "bucket(2, key.__raw__)"], ["day", "bucket(3, key.__raw__)"])
_POINTS: Final = {
    Verb.ARCHIVE: ("after_upload", "before_stage", "after_stage", "before_commit", "after_commit", "after_confirm")
}
_RANGES: Final = "archiver.ranges"
_HEAD: Final = "archiver.head"
_COMMITTING: Final = ("before_commit", "after_commit")
_ANSWERS: Final = (
    Fault.LOSE_REQUEST,
    Fault.LOSE_ANSWER,
    Fault.ANSWER_504,
    Fault.ANSWER_409,
    Fault.ANSWER_400,
    Fault.ANSWER_403,
    Fault.DELIVER_TWICE,
    Fault.REFUSE_503,
)
_OBJECTS: Final = (ObjectFault.ERROR_500, ObjectFault.DENIED, ObjectFault.CUT_UPLOAD, ObjectFault.LOSE_ANSWER)


class Scene:
    """With `sql`, commands are killable processes on Spark, and Spark is the other engine."""

    def __init__(self, ground: Ground, plan: Plan, sql: Callable[[str], Any] | None = None) -> None:
        self.ground = ground
        self.stack: Stack = ground.stack
        self.plan = plan
        self.topic = self.stack.topic(plan.partitions)
        terms = _TERMS[2] if plan.by_columns else _TERMS[0]
        settings: dict[str, Any] = {"partition_by": terms, "snapshot_retention": "1d"}
        self.folder = self.stack.scratch / self.topic
        self.folder.mkdir()
        if plan.is_decoded:
            settings = partitioned.settings(self.folder, terms=terms) | {"snapshot_retention": "1d"}
        path = self.stack.config({self.topic: settings}, archive={"orphan_grace": "0s"})
        self._is_killed = sql is not None
        self.commands = Commands(path=path, topic=self.topic, spark=self._is_killed)
        write = _writer(plan.writer)
        if sql is None:
            self.other = OtherEngine(self.table, bounds_nested=plan.bounds_nested, write=write)
        else:
            self.other = SparkOtherEngine(self.table, sql, write=write)
        self._catalog = self.stack.catalog()
        self._name = self.commands.config.topic(self.topic).table
        self._produced = 0

    def run(self, command: Callable[[Commands], Any], commands: Commands) -> Said:
        if self._is_killed:
            return said_by_process(command, commands)
        return said_by(lambda: command(commands))

    def table(self) -> Table:
        return self._catalog.load_table(self._name)

    @property
    def first_offsets(self) -> dict[int, int]:
        text = self.table().properties.get("archiver.first-offsets", "{}")
        return {int(partition): int(offset) for partition, offset in json.loads(text).items()}

    @property
    def lacks_commits(self) -> bool:
        metadata = self.table().metadata
        heads = [
            (snapshot.sequence_number or 0, snapshot.snapshot_id)
            for snapshot in metadata.snapshots
            if snapshot.summary and snapshot.summary[_RANGES]
        ]
        if text := metadata.properties.get(_HEAD):
            snapshot_id, sequence = json.loads(text)
            heads.append((sequence, snapshot_id))
        line = {snapshot.snapshot_id: snapshot for snapshot in ancestors_of(metadata.current_snapshot(), metadata)}
        sequence, snapshot_id = max(heads, default=(0, None))
        return snapshot_id not in line and any((snapshot.sequence_number or 0) < sequence for snapshot in line.values())

    def produce(self, noise: Random) -> list[Seen]:
        count = noise.randrange(8, 40)
        messages = [self._message(noise, self._produced + number) for number in range(count)]
        self._produced += count
        if noise.random() < 0.1:
            self.stack.begun(self.topic, *messages[: count // 2]).abort_transaction(30)
            wait_until_decided(self.stack, self.topic, self.plan.partitions)
        self.stack.produce(self.topic, *messages, batch_num_messages=noise.choice((3, 10, 1000)))
        return from_kafka(self.stack, self.topic, self.plan.partitions)

    def _message(self, noise: Random, number: int) -> dict[str, Any]:
        value = partitioned.order(noise, number) if self.plan.is_decoded else b"v%d" % number
        return {
            "key": noise.choice((b"k%d" % (number % 7), b"k%d" % (number % 3), None)),
            "value": noise.choice((value, value, value, None)),
            "partition": noise.randrange(self.plan.partitions),
            "timestamp": START + number,
            "headers": [("h", b"%d" % number)] if number % 3 == 0 else None,
        }

    def lose_registry(self, *, with_journal: bool) -> None:
        self.commands = self.commands.without_registry(self.stack, with_journal=with_journal)

    def change_terms(self, noise: Random) -> None:
        terms = noise.choice(_TERMS)
        text = re.sub(r'"partition_by" = .*', f'"partition_by" = {json.dumps(terms)}', self.commands.path.read_text())
        self.commands.path.write_text(text)

    def set_main(self, snapshot_id: int) -> None:
        table = self.table()
        update = SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id})
        self._catalog.commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (update,))

    def upgrade(self) -> None:
        table = self.table()
        update = UpgradeFormatVersionUpdate.model_validate({"format-version": 3})
        self._catalog.commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (update,))

    @contextmanager
    def error(self, verb: Verb, noise: Random) -> Iterator[tuple[Commands, str]]:
        match noise.choice(("point", "answer", "store")):
            case "point":
                point = noise.choice(_POINTS.get(verb, _COMMITTING))
                if self._is_killed:
                    yield replace(self.commands, fault=f"{point}:kill"), f"killed at {point}"
                else:
                    os.environ[VARIABLE] = f"{point}:raise"
                    try:
                        yield self.commands, f"error at {point}"
                    finally:
                        os.environ.pop(VARIABLE)
            case "answer":
                fault = noise.choice(_ANSWERS)
                self.ground.catalog.faults.put(fault)
                self.ground.catalog.older_loads = [1] * noise.randrange(3)
                yield self._through_proxies(), f"catalog: {fault.value}, older loads {self.ground.catalog.older_loads}"
            case _:
                befallen = noise.choice(_OBJECTS)
                times, skip = noise.choice((1, 2, 20)), noise.randrange(6)
                self.ground.store.arm(befallen, times=times, skip=skip)
                yield self._through_proxies(), f"store: {befallen.value}, {times} times after {skip}"
        self.ground.catalog.calm()
        self.ground.store.calm()

    def _through_proxies(self) -> Commands:
        uri = f'"uri" = {json.dumps(self.stack.catalog_properties["uri"])}\n'
        ours = {
            "uri": self.ground.catalog.uri,
            "s3.proxy-uri": self.ground.store.uri,
            "s3.request-timeout": "5",
            "s3.connect-timeout": "5",
        }
        lines = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in ours.items())
        path: Path = self.commands.path.with_name("proxied.toml")
        path.write_text(self.commands.path.read_text().replace(uri, lines))
        path.chmod(0o600)
        return replace(self.commands, path=path)


def _writer(writer: Writer) -> Write:
    """Fall back to pyarrow without Polars, which only `make interop` installs."""
    match writer:
        case Writer.DUCKDB:
            return written_by_duckdb
        case Writer.POLARS if find_spec("polars"):
            return written_by_polars
        case _:
            return written_by_arrow
