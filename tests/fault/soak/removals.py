"""Rounds on retention, legal holds and erasure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from archiver.archive.topic_archive import open_archive
from archiver.config import load_config
from archiver.errors import RecordsRetired
from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.replay import ReplayConsumer
from archiver.replay.export import Export
from archiver.upkeep.holds import HoldKeeper
from tests.fault.soak import faults
from tests.fault.soak.checker import Anomaly, Defect
from tests.fault.soak.course import Course
from tests.fault.soak.jobs import Ending, Job, Verb, running
from tests.fault.soak.removal_verdict import Held, Reading, judge_removed, stored, tabled
from tests.fault.soak.scene import Subject
from tests.fault.soak.troubles import STEP_SECONDS
from tests.fault.soak.verdict import by_partition, judge

_COMMITS = 3
_HELD = 5
_POLL_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    subject: Subject
    partition: int
    before: int
    erased: range

    def held(self, job: str) -> range:
        if job == "erase":
            return range(self.erased.stop - 1, self.erased.stop)
        return range(max(0, self.before - _HELD), self.before)


def retire_races(course: Course, fault: faults.RetireRaces) -> None:
    scene, subject = course.scene, course.scene.first
    for _ in range(_COMMITS):
        course.produce(60)
        course.heal()
    course.verified(judge(scene))
    wish = _wish(course, subject, whole_files="expire" in {fault.job, fault.beside})
    course.produce(60)
    config, patient = _deleting(course), _deleting(course, orphan_grace="1h")
    with Reading.begun(scene.direct, subject, wish.partition) as reading:
        job, beside = _job(config, wish, fault.job), None
        if fault.beside is None:
            with running(_faulty(job, f"{fault.point}:kill@1"), scene.folder) as started:
                course.strike(fault, struck=course.end(started).killed)
        else:
            with running(_faulty(job, f"{fault.point}:stop@1"), scene.folder) as started:
                course.strike(fault, struck=started.stops(STEP_SECONDS))
                beside = _beside(course, patient, wish, fault)
                started.goes_on()
                course.end(started)
        if beside is not None:
            _under_hold(course, job, beside)
        course.heal()
        asked = [verb for verb in (fault.job, fault.beside) if verb in {"expire", "edge", "erase"}]
        for verb in ("compact", *asked):
            ending = _run(course, _job(config, wish, verb))
            if not ending.succeeded:
                course.blame(f"{verb} wasn't ended by another run", ending)
        course.heal()
        _expect(course, wish, asked)
        course.verified(judge_removed(scene))
        course.anomalies += reading.ended(subject)


def retired_beneath(course: Course, fault: faults.RetiredBeneath) -> None:
    scene, subject = course.scene, course.scene.first
    for _ in range(_COMMITS):
        course.produce(60)
        course.heal()
    course.verified(judge(scene))
    wish = _wish(course, subject, whole_files=True)
    config = _deleting(course)
    offsets = [record.offset for record in subject.verified.records[wish.partition]]
    read = _consumed if fault.reader == "consumer" else _exported
    with read(scene.direct, subject.topic, wish.partition) as reading:
        seen = [next(reading)]
        ended = _run(course, _job(config, wish, "expire"))
        _run(course, _job(config, wish, "expire"))
        course.strike(fault, struck=ended.succeeded)
        said = False
        try:
            seen.extend(reading)
        except (RecordsRetired, KafkaException):
            said = True
    if seen != (offsets[: len(seen)] if said else offsets):
        missing = sorted({*offsets} - {*seen})
        text = (
            f"a reader at {seen[0]} left out {missing[:3]} and said nothing, as {wish.before} became the first offset"
        )
        course.anomalies.append(Anomaly(defect=Defect.UNTOLD, where="reader", text=text))
    course.heal()
    _expect(course, wish, ["expire"])
    course.verified(judge_removed(scene))


@contextmanager
def _exported(config: Path, topic: str, partition: int) -> Iterator[Iterator[int]]:
    archive = open_archive(load_config(config), topic)
    with closing(
        Export(selected=SelectedRecords(archive=archive, selection=Selection(partitions=(partition,)))).batches()
    ) as batches:
        yield (offset for batch in batches for offset in batch.column("offset").to_pylist())


@contextmanager
def _consumed(config: Path, topic: str, partition: int) -> Iterator[Iterator[int]]:
    options = {"auto.offset.reset": "error", "enable.partition.eof": True}
    with ReplayConsumer(load_config(config), options) as consumer:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        polled = (consumer.poll(_POLL_SECONDS) for _ in count())
        records = takewhile(lambda message: message is not None and message.error() is None, polled)
        yield (message.offset() for message in records if message is not None)


def _wish(course: Course, subject: Subject, *, whole_files: bool) -> _Wish:
    judged, noise = subject.verified, course.noise
    partition = max(judged.records, key=lambda item: len(judged.records[item]))
    offsets = [item.offset for item in judged.records[partition]]
    at = noise.randrange(len(offsets) // 4, len(offsets) // 2)
    before = offsets[at]
    if whole_files:
        table = subject.stack.catalog().load_table(subject.table)
        field = table.schema().find_field("kafka.offset").field_id
        firsts = [int.from_bytes(file.lower_bounds[field], "little") for file in by_partition(table)[partition]]
        before = min(
            (number for number in firsts if number > offsets[0]), default=before, key=lambda item: abs(item - before)
        )
    start = noise.randrange(len(offsets) // 3, len(offsets) - 2)
    end = min(len(offsets) - 1, start + noise.randrange(1, 40))
    return _Wish(subject=subject, partition=partition, before=before, erased=range(offsets[start], offsets[end] + 1))


def _deleting(course: Course, orphan_grace: str = "0s") -> Path:
    text = course.scene.config.read_text()
    line = '"orphan_grace" = "0s"\n'
    assert line in text
    text = text.replace(line, f'"orphan_grace" = "{orphan_grace}"\n')
    for subject in course.scene.subjects:
        line = f'"table" = "{subject.table}"\n'
        assert line in text
        text = text.replace(line, f'{line}"snapshot_retention" = "0s"\n')
    path = course.scene.config.with_name(f"removing-{orphan_grace}.toml")
    path.write_text(text)
    path.chmod(0o600)
    return path


def _job(config: Path, wish: _Wish, kind: str) -> Job:
    topic: dict[str, Any] = {"config": config, "topic": wish.subject.topic, "partition": wish.partition}
    match kind:
        case "expire" | "edge":
            return Job(**topic, verb=Verb.EXPIRE, before=wish.before, rows=kind == "edge")
        case "erase":
            where = f"partition = {wish.partition} and offset >= {wish.erased.start} and offset < {wish.erased.stop}"
            return Job(**topic, verb=Verb.ERASE, where=where)
        case "compact":
            return Job(config=config, verb=Verb.COMPACT)
        case _:
            return Job(config=config)


def _faulty(job: Job, fault: str) -> Job:
    return replace(job, fault=fault)


def _run(course: Course, job: Job) -> Ending:
    with running(job, course.scene.folder) as started:
        return course.end(started)


def _beside(course: Course, config: Path, wish: _Wish, fault: faults.RetireRaces) -> Held | None:
    """Act while the job is suspended. Returns a placed hold.

    An erasure waits for the job's end: its later uploads aren't a dead job's.
    """
    match fault.beside:
        case "archive":
            course.heal()
        case "hold":
            return _placed(course, wish, wish.held(fault.job))
        case None:
            pass
        case other:
            _run(course, _job(config, wish, other))
    return None


def _placed(course: Course, wish: _Wish, offsets: range) -> Held:
    holds = HoldKeeper(load_config(course.scene.direct))
    done = holds.place(wish.subject.topic, start=str(offsets.start), end=str(offsets.stop), partitions=[wish.partition])
    places = {(wish.partition, offset) for offset in offsets}
    return Held(
        subject=wish.subject,
        hold_id=done.hold.id,
        in_store=frozenset(stored(wish.subject) & places),
        in_table=frozenset() if done.in_doubt else frozenset(tabled(wish.subject) & places),
    )


def _under_hold(course: Course, job: Job, held: Held) -> None:
    course.anomalies += held.missed("after the job")
    again = _run(course, job)
    if not again.succeeded and {failure.kind for failure in again.failures} - {"RecordsHeld", "unfinished"}:
        course.blame("a run under a hold fails for another reason", again)
    course.anomalies += held.missed("after another run")
    HoldKeeper(load_config(course.scene.direct)).release(held.subject.topic, held.hold_id)


def _expect(course: Course, wish: _Wish, asked: list[str]) -> None:
    subject, judged = wish.subject, wish.subject.verified
    first = subject.first_offsets()
    expected = {wish.partition: wish.before} if {"expire", "edge"} & {*asked} else {}
    for partition, offset in first.items():
        before = judged.first.get(partition, 0)
        most = max(before, expected.get(partition, 0))
        if not before <= offset <= most or ("edge" in asked and offset < most):
            course.blame(f"partition {partition} begins at {offset}, not at {most}; before at {before}")
        subject.ledger.forget(subject.topic, partition, range(before, offset))
    judged.first |= first
    if "erase" in asked:
        judged.erased |= {(wish.partition, item) for item in wish.erased}
        subject.ledger.forget(subject.topic, wish.partition, wish.erased)
    for partition, records in judged.records.items():
        begin = judged.first.get(partition, 0)
        judged.records[partition] = [
            record for record in records if record.offset >= begin and (partition, record.offset) not in judged.erased
        ]
    for item in course.scene.subjects:
        item.verified.rewritten = True
