"""The verdict on table, replay, registry and files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import psycopg
from pyiceberg.table import Table

from archiver.errors import ArchiverError
from archiver.storage.objects import ObjectStore
from tests.fault.soak import readings
from tests.fault.soak.checker import Anomaly, Defect, compare, hold_against_ledger
from tests.fault.soak.scene import Scene, Subject
from tests.support.archive.readers import Seen, digest_of
from tests.support.archive.registry_books import differences_of_books


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    records: int
    digest: str
    anomalies: tuple[Anomaly, ...]


def judge(scene: Scene, *, stopped: frozenset[int] = frozenset()) -> Verdict:
    """All of Kafka's committed records must be archived, except `stopped` partitions of the first topic."""
    return _sum(
        _judge(scene, subject, stopped if subject is scene.first else frozenset()) for subject in scene.subjects
    )


def judge_part(scene: Scene) -> Verdict:
    verdict = _sum(_judge_part(subject) for subject in scene.subjects)
    differing = [anomaly for subject in scene.subjects for anomaly in _books(scene, subject)]
    return replace(verdict, anomalies=(*verdict.anomalies, *differing))


def judge_whole(scene: Scene) -> Verdict:
    return _sum(_judge_whole(scene, subject) for subject in scene.subjects)


def judge_rewritten(scene: Scene) -> Verdict:
    new = _sum(_taken_up(subject) for subject in scene.subjects)
    whole = judge_whole(scene)
    for subject in scene.subjects:
        _adopt_files(subject)
    return Verdict(records=new.records, digest=new.digest, anomalies=whole.anomalies)


def _taken_up(subject: Subject) -> Verdict:
    verified, ends = subject.verified, subject.log_ends()
    fresh = _expected(subject, verified.ends)
    for partition, records in fresh.items():
        verified.records.setdefault(partition, []).extend(records)
    verified.ends |= {partition: end for partition, end in ends.items() if partition in verified.ends}
    new = readings.in_order(fresh)
    return Verdict(records=len(new), digest=digest_of(new), anomalies=())


def _sum(verdicts: Iterable[Verdict]) -> Verdict:
    every = tuple(verdicts)
    return Verdict(
        records=sum(verdict.records for verdict in every),
        digest=f"{sum(int(verdict.digest, 16) for verdict in every) % 2**128:032x}",
        anomalies=tuple(anomaly for verdict in every for anomaly in verdict.anomalies),
    )


def _judge(scene: Scene, subject: Subject, stopped: frozenset[int]) -> Verdict:
    verified = subject.verified
    starts = {partition: end for partition, end in verified.ends.items() if partition not in stopped}
    ends = {partition: end for partition, end in subject.log_ends().items() if partition not in stopped}
    expected = _expected(subject, starts)
    new = readings.in_order(expected)
    table = subject.stack.catalog().load_table(subject.table)
    anomalies = [
        *_rows(subject, table, new),
        *_replayed(scene, subject, starts, new),
        *_progress(subject, table, ends),
        *_registry(scene, subject, new, stopped),
        *_books(scene, subject),
    ]
    for partition, records in expected.items():
        verified.records.setdefault(partition, []).extend(records)
    verified.ends |= ends
    return Verdict(records=len(new), digest=digest_of(new), anomalies=tuple(anomalies))


def _judge_part(subject: Subject) -> Verdict:
    nothing = Verdict(records=0, digest=digest_of(()), anomalies=())
    if not subject.stack.catalog().table_exists(subject.table):
        return nothing
    table = subject.stack.catalog().load_table(subject.table)
    tasks = [task for task in _tasks_in_order(table) if task.file.file_path not in subject.verified.files]
    rows = _rows_of(subject, table, tasks)
    reached = _offsets(table)
    starts = {partition: subject.verified.ends.get(partition, 0) for partition in reached}
    going = {partition: start for partition, start in starts.items() if reached[partition] > start}
    records = readings.in_order(_expected(subject, going)) if going else []
    expected = [record for record in records if record.offset < reached[record.partition]]
    where = f"table {subject.table}, before healing"
    anomalies = compare(where, expected, rows, subject.ledger, subject.topic)
    return Verdict(records=len(expected), digest=digest_of(expected), anomalies=tuple(anomalies))


def _expected(subject: Subject, starts: readings.Starts) -> dict[int, list[Seen]]:
    verified = subject.verified
    begins = {partition: max(start, verified.staged_to.get(partition, 0)) for partition, start in starts.items()}
    records = readings.of_kafka(subject.stack, subject.topic, begins)
    return {
        partition: [
            *(record for record in verified.staged.get(partition, ()) if record.offset >= start),
            *records[partition],
        ]
        for partition, start in starts.items()
    }


def keep_staged(scene: Scene, subject: Subject) -> dict[int, int]:
    """Remember staged records before Kafka deletes them. Returns the ends by partition."""
    verified, ends = subject.verified, dict[int, int]()
    for range_ in _ranges(scene.dsn, subject.topic):
        if range_.state == "uploaded":
            ends[range_.partition] = max(range_.end, ends.get(range_.partition, 0))
    staged = _expected(subject, {partition: verified.ends.get(partition, 0) for partition in ends})
    verified.staged |= {
        partition: [record for record in records if record.offset < ends[partition]]
        for partition, records in staged.items()
    }
    verified.staged_to |= ends
    return ends


def _adopt_files(subject: Subject) -> None:
    tasks = subject.stack.catalog().load_table(subject.table).scan().plan_files()
    subject.verified.files = {task.file.file_path: _size(task) for task in tasks}


def _size(task: Any) -> tuple[int, int]:
    return task.file.record_count, task.file.file_size_in_bytes


def _judge_whole(scene: Scene, subject: Subject) -> Verdict:
    ledger, topic = subject.ledger, subject.topic
    verified = readings.in_order(subject.verified.records)
    table = subject.stack.catalog().load_table(subject.table)
    rows = _rows_of(subject, table, _tasks_in_order(table))
    if subject.verified.rewritten:
        rows.sort(key=_place_of)
    starts = {record: subject.verified.first.get(record, 0) for record in subject.verified.records}
    anomalies = [
        *compare(f"whole table {subject.table}", verified, rows, ledger, topic),
        *hold_against_ledger(f"whole table {subject.table}", rows, ledger, topic),
        *_replayed(scene, subject, starts, verified),
        *_books(scene, subject),
    ]
    return Verdict(records=len(verified), digest=digest_of(verified), anomalies=tuple(anomalies))


def _replayed(scene: Scene, subject: Subject, starts: readings.Starts, expected: Sequence[Seen]) -> list[Anomaly]:
    where = f"replay of {subject.topic}"
    try:
        records = readings.in_order(readings.of_replay(scene.direct, subject.topic, starts))
    except ArchiverError as error:
        return [Anomaly(defect=Defect.REFUSED, where=where, text=str(error))]
    anomalies = compare(where, expected, records, subject.ledger, subject.topic)
    if digest_of(records) != digest_of(expected):
        anomalies.append(Anomaly(defect=Defect.DIGEST, where=where, text="is not Kafka's"))
    return anomalies


def _rows(subject: Subject, table: Table, expected: Sequence[Seen]) -> list[Anomaly]:
    tasks = _tasks_in_order(table)
    judged = subject.verified.files
    new = [task for task in tasks if task.file.file_path not in judged]
    rows = _rows_of(subject, table, new)
    anomalies = compare(f"table {subject.table}", expected, rows, subject.ledger, subject.topic)
    files = {task.file.file_path: _size(task) for task in tasks}
    twice = [path for path, times in Counter(task.file.file_path for task in tasks).items() if times > 1]
    objects = {entry.path: entry.size for entry in ObjectStore.of(table.io.properties).list(f"{table.location()}/data")}
    wrong = {
        "referred to twice": twice,
        "gone from the table": [path for path in judged if path not in files],
        "of another size or row count than before": [
            path for path, size in judged.items() if path in files and files[path] != size
        ],
        "without its object": [path for path, (_, size) in files.items() if objects.get(path) != size],
    }
    subject.verified.files = files
    return anomalies + [
        Anomaly(defect=Defect.FILES, where=f"table {subject.table}", text=f"{what}: {paths[:3]}")
        for what, paths in wrong.items()
        if paths
    ]


def _rows_of(subject: Subject, table: Table, tasks: Sequence[Any]) -> list[Seen]:
    rows = list(readings.of_rows(table, tasks))
    if subject.by_columns:
        rows.sort(key=_place_of)
    return rows


def _place_of(record: Seen) -> tuple[int, int]:
    return record.partition, record.offset


def _progress(subject: Subject, table: Table, ends: dict[int, int]) -> list[Anomaly]:
    anomalies = []
    offsets = _offsets(table)
    if wrong := {
        partition: (offsets.get(partition), end)
        for partition, end in ends.items()
        if end and offsets.get(partition) != end
    }:
        anomalies.append(f"archived to, Kafka's end: {wrong}")
    at: dict[int, int] = {}
    for snapshot in sorted(table.metadata.snapshots, key=lambda entry: entry.sequence_number or 0):
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        for name, (start, end) in json.loads(summary.get("archiver.ranges", "{}")).items():
            partition = int(name)
            # Snapshots in the middle expire once their files have records that were removed.
            is_thinned = bool(subject.verified.first or subject.verified.erased)
            if at.get(partition, start) != start and not (is_thinned and at[partition] < start):
                anomalies.append(
                    f"a snapshot advances {partition} from {start}, the one before ended at {at[partition]}"
                )
            at[partition] = end
    if wrong_ends := {
        partition: (end, offsets.get(partition)) for partition, end in at.items() if offsets.get(partition) != end
    }:
        anomalies.append(f"snapshots advanced to, property: {wrong_ends}")
    ids = Counter(
        snapshot.summary.additional_properties.get("archiver.commit-id")
        for snapshot in table.metadata.snapshots
        if snapshot.summary
    )
    if twice := [name for name, times in ids.items() if name and times > 1]:
        anomalies.append(f"commits made twice: {twice}")
    return [Anomaly(defect=Defect.OFFSETS, where=f"table {subject.table}", text=text) for text in anomalies]


def _registry(scene: Scene, subject: Subject, expected: Sequence[Seen], stopped: frozenset[int]) -> list[Anomaly]:
    judged, where = subject.verified, f"registry of {subject.topic}"
    ranges = _ranges(scene.dsn, subject.topic)
    committed = [range_ for range_ in ranges if range_.state == "committed"]
    texts = [
        f"left staged: {range_}" for range_ in ranges if range_.state == "uploaded" and range_.partition not in stopped
    ]
    existing = {(range_.partition, range_.offset) for range_ in (*expected, *readings.in_order(judged.records))}
    at: dict[int, int] = {}
    lost: dict[int, int] = {}
    for range_ in (item for item in committed if item.part == 0):
        gap = range(at.get(range_.partition, range_.start), range_.start)
        is_overlap = at.get(range_.partition, range_.start) > range_.start
        # A registry that was rebuilt need not know of offsets without a record.
        if is_overlap or (gap and (not scene.was_rebuilt or any((range_.partition, item) in existing for item in gap))):
            texts.append(f"{range_} where {at[range_.partition]} comes next")
        at[range_.partition] = range_.end
        if range_.lost:
            lost[range_.partition] = lost.get(range_.partition, 0) + range_.end - range_.start
    invented = any(count > judged.lost.get(partition, 0) for partition, count in lost.items())
    if invented or (lost != judged.lost and not scene.was_rebuilt):
        texts.append(f"lost offsets recorded {lost}, really {judged.lost}")
    anomalies = [Anomaly(defect=Defect.OFFSETS, where=where, text=text) for text in texts[:3]]
    odd = sorted({range_.path for range_ in committed if range_.path} ^ set(judged.files))
    if odd and not judged.rewritten:
        anomalies.append(Anomaly(defect=Defect.FILES, where=where, text=f"not in both it and table: {odd[:3]}"))
    digests = [
        range_.digest for range_ in committed if range_.start >= judged.ends.get(range_.partition, 0) and range_.digest
    ]
    total, right = f"{sum(int(digest, 16) for digest in digests) % 2**128:032x}", digest_of(expected)
    if total != right:
        anomalies.append(Anomaly(defect=Defect.DIGEST, where=where, text=f"{total}, Kafka's is {right}"))
    return anomalies


def _books(scene: Scene, subject: Subject) -> Iterator[Anomaly]:
    for text in differences_of_books(scene.direct, subject.topic)[:3]:
        yield Anomaly(defect=Defect.BOOKS, where=f"registry of {subject.topic}", text=text)


class _Range(NamedTuple):
    partition: int
    start: int
    end: int
    state: str
    path: str | None
    digest: str | None
    lost: bool
    part: int


def _ranges(dsn: str, topic: str) -> list[_Range]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT partition, start_offset, end_offset, files.state, path, digest, lost, part"
            " FROM files JOIN topics ON topics.id = files.topic_id"
            " WHERE files.state IN ('uploaded', 'committed') AND topics.topic = %s"
            " ORDER BY partition, start_offset, part",
            (topic,),
        ).fetchall()
    return [_Range(*row) for row in rows]


def _tasks_in_order(table: Table) -> list[Any]:
    return sorted(table.scan().plan_files(), key=lambda task: _place(table, task.file))


def by_partition(table: Table) -> dict[int, list[Any]]:
    files: dict[int, list[Any]] = {}
    for task in _tasks_in_order(table):
        files.setdefault(_place(table, task.file)[0], []).append(task.file)
    return files


def _place(table: Table, file: Any) -> tuple[int, int]:
    fields = (table.schema().find_field(f"kafka.{name}").field_id for name in ("partition", "offset"))
    partition, offset = (int.from_bytes(file.lower_bounds[field], "little") for field in fields)
    return partition, offset


def _offsets(table: Table) -> dict[int, int]:
    plain = json.loads(table.properties.get("archiver.offsets", "{}"))
    return {int(partition): int(value[0]) for partition, value in plain.items()}
