"""Rounds on other writers of table and store."""

from __future__ import annotations

from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.update import AssertTableUUID, SetSnapshotRefUpdate
from pyiceberg.transforms import DayTransform

from archiver.fault_points import FaultPoint
from tests.fault.soak import faults
from tests.fault.soak.course import Course
from tests.fault.soak.jobs import Verb
from tests.fault.soak.scene import Subject
from tests.fault.soak.verdict import by_partition, judge, judge_rewritten, keep_staged

_ALWAYS = 1 << 30


def rolled_back(course: Course, fault: faults.RolledBack) -> None:
    subject = course.scene.first
    course.heal()
    for _ in range(fault.snapshots):
        course.produce(100)
        course.heal()
    course.verified(judge(course.scene))
    table = _table(subject)
    _set_main(subject, table, _ours_before(table, fault.snapshots))
    course.strike(fault)
    if fault.goes_on:
        course.produce(100)
    for _ in range(2):
        course.stopped(course.run(), "RolledBack", (subject.topic, None))
    _refill(course, subject, killed=fault.killed)


def rows_deleted(course: Course, fault: faults.RowsDeleted) -> None:
    subject, noise = course.scene.first, course.noise
    course.heal()
    course.verified(judge(course.scene))
    table = _table(subject)
    files = by_partition(table)
    partition = noise.choice(sorted(files))
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
        for file in files[partition] if fault.whole else [noise.choice(files[partition])]:
            change.delete_data_file(file)
    subject.verified.rewritten = True
    course.strike(fault)
    for _ in range(2):
        course.stopped(course.run(), "RowsRemoved", (subject.topic, None))
    _refill(course, subject, killed=fault.killed)


def spec_changed(course: Course, fault: faults.SpecChanged) -> None:
    """Files get no partition values of a foreign spec: the topic stops until the spec is back."""
    subject = course.scene.first
    if fault.staged:
        course.run(fault=f"{FaultPoint.AFTER_STAGE}:kill@1")
    else:
        course.heal()
    course.produce(100)
    table = _table(subject)
    schema, spec = table.schema(), table.spec()  # a commit changes the table's object too
    with table.update_spec() as change:
        for field in spec.fields:
            change.remove_field(field.name)
        change.add_field("kafka.event_timestamp", DayTransform(), "event_day")
    course.strike(fault)
    for _ in range(2):
        ending = course.run()
        if not any(failure.topic == subject.topic and failure.partition is None for failure in ending.failures):
            course.blame("a job goes on under a partition spec that isn't ours", ending)
        course.told(subject.topic, ending)
    with _table(subject).update_spec() as change:
        change.remove_field("event_day")
        for field in spec.fields:
            # Of a time alone it doesn't matter which copy of the timestamp is the source.
            source = None if subject.by_columns else "kafka.ingest_timestamp"
            change.add_field(source or str(schema.find_column_name(field.source_id)), field.transform, field.name)


def store_empty(course: Course, fault: faults.StoreEmpty) -> None:
    scene, store = course.scene, course.scene.ground.store
    course.run(fault=f"{FaultPoint.AFTER_STAGE}:kill@1")
    if fault.deleted:
        for subject in scene.subjects:
            for partition, end in keep_staged(scene, subject).items():
                subject.delete_records(partition, end)
    store.arm(fault.answer, times=_ALWAYS)
    before = store.struck
    for _ in range(2):
        ending = course.run()
        if ending.succeeded:
            course.blame("a job succeeds on a store that has nothing", ending)
    course.strike(fault, struck=store.struck > before)
    store.calm()


def _refill(course: Course, subject: Subject, *, killed: FaultPoint | None) -> None:
    if killed is not None:
        course.run(verb=Verb.REFILL, topic=subject.topic, fault=f"{killed}:kill@1")
    ending = course.run(verb=Verb.REFILL, topic=subject.topic)
    if not ending.succeeded:
        course.blame("records that others took out weren't brought back", ending)
    subject.verified.rewritten = True
    course.heal()
    course.verified(judge_rewritten(course.scene))


def _table(subject: Subject) -> Table:
    return subject.stack.catalog().load_table(subject.table)


def _ours_before(table: Table, count: int) -> int:
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    at = table.current_snapshot()
    while at is not None and count:
        summary: dict[str, Any] = at.summary.additional_properties if at.summary else {}
        count -= "archiver.ranges" in summary
        at = by_id.get(at.parent_snapshot_id or 0)
    assert at is not None, "the table has no snapshot so far back"
    return at.snapshot_id


def _set_main(subject: Subject, table: Table, snapshot_id: int) -> None:
    update = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id)
    subject.stack.catalog().commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (update,))
