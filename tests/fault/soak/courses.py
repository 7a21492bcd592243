"""Rounds with reported losses and repairs."""

from __future__ import annotations

from confluent_kafka import KafkaException

from tests.fault.soak import faults
from tests.fault.soak.course import Course
from tests.fault.soak.jobs import Verb, running
from tests.fault.soak.log_cut import cut_log
from tests.fault.soak.scene import Subject
from tests.fault.soak.troubles import STEP_SECONDS, kill_once_held
from tests.fault.soak.verdict import judge, judge_whole
from tests.support.catalog.lossy_catalog import Delivery
from tests.support.catalog.lossy_catalog import Fault as CommitFault
from tests.support.timing.eventually import eventually

_TOPIC_SECONDS = 20.0


def catalog_away(course: Course, fault: faults.CatalogAway) -> None:
    """Without the catalog runs only stage; `reconcile` commits later, without Kafka."""
    catalog = course.scene.ground.catalog
    catalog.away = True
    for _ in range(fault.runs):
        course.produce(200)
        course.stopped(course.run(), "CatalogUnreachable", *course.every_topic)
    course.strike(fault)
    catalog.calm()
    if fault.killed is not None:
        course.run(verb=Verb.RECONCILE, fault=f"{fault.killed}:kill@1")
    ending = course.run(verb=Verb.RECONCILE)
    if not ending.succeeded:
        course.blame("staged files weren't reconciled", ending)


def registry_lost(course: Course, fault: faults.RegistryLost) -> None:
    course.strike(fault, struck=course.run(fault=f"{fault.point}:kill@1").killed)
    course.scene.lose_registry()
    course.stopped(course.run(), "RegistryBehind", *course.every_topic)
    if fault.rebuild_killed is not None:
        with running(course.job(verb=Verb.REBUILD), course.scene.folder) as job:
            if not job.ends(fault.rebuild_killed):
                job.kill()
            course.end(job)
    ending = course.run(verb=Verb.REBUILD)
    if not ending.succeeded:
        course.blame("the registry wasn't rebuilt", ending)


def registry_split(course: Course, fault: faults.RegistrySplit) -> None:
    scene = course.scene
    with running(course.job(fault=f"{fault.point}:stop@1"), scene.folder) as job:
        if job.stops(STEP_SECONDS):
            course.strike(fault)
        scene.lose_registry()
        ending = course.run(verb=Verb.REBUILD)
        if not ending.succeeded:
            course.blame("the registry wasn't rebuilt beside a job that is suspended", ending)
        course.heal()
        job.goes_on()
        course.end(job)


def others_expire(course: Course, fault: faults.OthersExpire) -> None:
    course.strike(fault, struck=course.run(fault=f"{fault.point}:kill@1").killed)
    for subject in course.scene.subjects:
        table = subject.stack.catalog().load_table(subject.table)
        with table.transaction() as transaction, transaction.update_snapshot().fast_append():
            pass
        table.refresh()
        current = table.metadata.current_snapshot_id
        older = [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id != current]
        table.maintenance.expire_snapshots().by_ids(older).commit()


def orphans_removed(course: Course, fault: faults.OrphansRemoved) -> None:
    catalog = course.scene.ground.catalog
    if fault.point is None:
        catalog.delivery = course.noise.choice((Delivery.BEFORE_NEXT_LOAD, Delivery.BY_HAND))
        catalog.faults.put(CommitFault.HOLD)
        with running(course.job(), course.scene.folder) as job:
            kill_once_held(course, job)
            course.end(job)
        course.strike(fault, struck=bool(catalog.holds))
        _remove_orphans(course, days=0.0)
        catalog.deliver_held()
        catalog.delivery = Delivery.BY_HAND
    else:
        course.strike(fault, struck=course.run(fault=f"{fault.point}:kill@1").killed)
        _remove_orphans(course, days=4.0)
    course.heal()
    _remove_orphans(course, days=4.0)
    left = course.run(verb=Verb.ORPHANS, days=4.0)
    if left.records:
        course.blame("orphans come again", left)


def _remove_orphans(course: Course, *, days: float) -> None:
    ending = course.run(verb=Verb.ORPHANS, days=days)
    if not ending.succeeded:
        course.blame("orphans weren't removed", ending)


def records_deleted(course: Course, fault: faults.RecordsDeleted) -> None:
    """The log begins after the archive's end: the partition stops, and an accepted gap is recorded."""
    subject = course.scene.first
    verified = subject.verified
    partition, before = _some_new_records(course, subject)
    subject.delete_records(partition, before)
    course.strike(fault)
    course.stopped(course.run(), "DataLoss", (subject.topic, partition))
    course.verified(judge(course.scene, stopped=frozenset({partition})))
    lost = range(verified.ends[partition], before)
    verified.lost[partition] = verified.lost.get(partition, 0) + len(lost)
    verified.ends[partition] = before
    subject.ledger.forget(subject.topic, partition, lost)
    if fault.killed is not None:
        course.run(accept_gaps=True, fault=f"{fault.killed}:kill@1")
    ending = course.run(accept_gaps=True)
    if not ending.succeeded:
        course.blame("a gap was not accepted", ending)


def log_cut(course: Course, fault: faults.LogCut) -> None:
    scene, subject = course.scene, course.scene.first
    course.heal()
    course.verified(judge(scene))
    ends = subject.verified.ends
    partition = max(ends, key=lambda number: ends[number])
    end = ends[partition]
    target = end - course.noise.randrange(1, min(end, 60))
    for broker in course.servers.brokers:
        course.servers.end(broker, killed=False)
    folders = [course.servers.log_folder(broker, subject.topic, partition) for broker in course.servers.brokers]
    (cut,) = {cut_log(folder, target) for folder in folders if folder.exists()}
    course.servers.up()
    course.brokers.whole(subject.topic)
    after = subject.strangers()
    after.backlog(course.noise, partition, end - cut + 50 if fault.regrown else (end - cut) // 2)
    for spared in set(ends) - {partition}:
        after.backlog(course.noise, spared, 20)
    course.strike(fault)
    for _ in range(2):
        course.stopped(course.run(), "DataLoss", (subject.topic, partition))
    course.verified(judge(scene, stopped=frozenset({partition})))
    course.found(judge_whole(scene))


def topic_recreated(course: Course, fault: faults.TopicRecreated) -> None:
    scene, subject = course.scene, course.scene.first
    course.heal()
    course.verified(judge(scene))
    subject.stack.delete_topic(subject.topic)
    _create(subject)
    subject.strangers().produce(course.noise, subject.partitions, 200)
    course.strike(fault)
    course.stopped(course.run(), "DataLoss", (subject.topic, None))
    course.found(judge_whole(scene))


def _create(subject: Subject) -> None:
    eventually(  # until then it is still being deleted
        lambda: subject.stack.topic(subject.partitions, name=subject.topic),
        f"{subject.topic} is created",
        seconds=_TOPIC_SECONDS,
        every=0.2,
        despite=(KafkaException,),
    )


def _some_new_records(course: Course, subject: Subject) -> tuple[int, int]:
    while True:
        ends = subject.verified.ends
        new = {number: end - ends[number] for number, end in subject.log_ends().items()}
        partition = max(new, key=lambda number: new[number])
        if new[partition] > 1:
            return partition, ends[partition] + course.noise.randrange(1, new[partition])
        course.produce(100)
