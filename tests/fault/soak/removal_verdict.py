"""The verdict after removals."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from archiver.archive.topic_archive import open_archive
from archiver.config import Config, load_config
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from archiver.upkeep.archived_topic import find_archived
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry
from tests.fault.soak.checker import Anomaly, Defect
from tests.fault.soak.scene import Scene, Subject
from tests.fault.soak.verdict import Verdict, judge_rewritten
from tests.fault.soak.verify_verdict import judge_verified

_SHOWN = 5


def judge_removed(scene: Scene) -> Verdict:
    verdict = judge_verified(scene, verdict=judge_rewritten(scene))
    anomalies = [*verdict.anomalies]
    for subject in scene.subjects:
        anomalies += _told(scene, subject)
        if again := stored(subject) & subject.verified.erased:
            text = f"the store has erased records: {sorted(again)[:_SHOWN]}"
            anomalies.append(Anomaly(defect=Defect.PHANTOM, where=subject.table, text=text))
    return Verdict(records=verdict.records, digest=verdict.digest, anomalies=tuple(anomalies))


def _told(scene: Scene, subject: Subject) -> Iterator[Anomaly]:
    config = load_config(scene.direct)
    with _archived(config) as (registry, catalog):
        archived = find_archived(config, subject.topic, registry=registry, catalog=catalog)
        first = {"table": subject.first_offsets(), "registry": registry.retention.first_offsets(archived.topic)}
        if config.archive.journal is not None:
            first["journal"] = dict(Journal.of(config).of_table(archived.table).read().first_offsets)
        if len({tuple(sorted(offsets.items())) for offsets in first.values()}) > 1:
            yield Anomaly(defect=Defect.OFFSETS, where=subject.table, text=f"first offsets differ: {first}")
        if waiting := registry.erasures.unfinished(archived.topic):
            yield Anomaly(defect=Defect.OUTCOME, where=subject.table, text=f"erasures are open: {waiting}")
        if begun := registry.rewrites.unfinished(archived.topic):
            yield Anomaly(defect=Defect.OUTCOME, where=subject.table, text=f"rewrites are open: {begun[:1]}")


@contextmanager
def _archived(config: Config) -> Iterator[tuple[Registry, TableCatalog]]:
    with Registry(config.registry.dsn) as registry, TableCatalog(config.catalog) as catalog:
        yield registry, catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    subject: Subject
    hold_id: str
    in_store: frozenset[tuple[int, int]]
    in_table: frozenset[tuple[int, int]]

    def missed(self, when: str) -> list[Anomaly]:
        sides = (("store", self.in_store - stored(self.subject)), ("table", self.in_table - tabled(self.subject)))
        return [
            Anomaly(
                defect=Defect.LOST,
                where=f"{side} of {self.subject.table}",
                text=f"held records are gone {when}: {sorted(gone)[:_SHOWN]} of {len(gone)}",
            )
            for side, gone in sides
            if gone
        ]


def stored(subject: Subject) -> set[tuple[int, int]]:
    table = subject.stack.catalog().load_table(subject.table)
    offsets: set[tuple[int, int]] = set()
    for entry in ObjectStore.of(table.io.properties).list(f"{table.location()}/data"):
        if entry.size:
            with table.io.new_input(entry.path).open() as file:
                offsets |= _places(pq.read_table(pa.BufferReader(file.read()), columns=["kafka"]))
    return offsets


def tabled(subject: Subject) -> set[tuple[int, int]]:
    table = subject.stack.catalog().load_table(subject.table)
    return _places(table.scan(selected_fields=("kafka.partition", "kafka.offset")).to_arrow())


def _places(rows: pa.Table) -> set[tuple[int, int]]:
    kafka = rows.column("kafka").combine_chunks()
    return set(zip(kafka.field("partition").to_pylist(), kafka.field("offset").to_pylist(), strict=True))


@dataclass(slots=True, kw_only=True)
class Reading:
    stream: Generator[pa.RecordBatch, None, None]
    given: list[pa.RecordBatch]
    there: dict[int, tuple[bytes | None, bytes | None]]
    partition: int

    @classmethod
    @contextmanager
    def begun(cls, config: Path, subject: Subject, partition: int) -> Iterator[Self]:
        records = {record.offset: (record.key, record.value) for record in subject.verified.records[partition]}
        with ExitStack() as closing:
            stream = open_archive(load_config(config), subject.topic).records(partition)
            closing.callback(stream.close)
            yield cls(stream=stream, given=[next(stream)], there=records, partition=partition)

    def ended(self, subject: Subject) -> list[Anomaly]:
        self.given += self.stream
        received = [
            (row["offset"], (row["key"], row["value"]))
            for batch in self.given
            for row in batch.select(["offset", "key", "value"]).to_pylist()
        ]
        offsets = [offset for offset, _ in received]
        judged = subject.verified
        left_out = self.there.keys() - {*offsets}
        lost = {
            number
            for number in left_out
            if number >= judged.first.get(self.partition, 0) and (self.partition, number) not in judged.erased
        }
        wrong = [offset for offset, record in received if offset in self.there and self.there[offset] != record]
        texts = {
            Defect.REORDERED: "" if offsets == sorted(set(offsets)) else "offsets don't rise",
            Defect.LOST: f"{sorted(lost)[:_SHOWN]}" if lost else "",
            Defect.CHANGED: f"{wrong[:_SHOWN]}" if wrong else "",
        }
        where = f"replay in progress of {subject.topic}"
        return [Anomaly(defect=defect, where=where, text=text) for defect, text in texts.items() if text]
