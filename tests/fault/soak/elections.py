"""Rounds with unclean elections, and elections within transactions."""

from __future__ import annotations

from archiver.fault_points import FaultPoint
from tests.fault.soak import faults
from tests.fault.soak.course import Course
from tests.fault.soak.jobs import running
from tests.fault.soak.troubles import STEP_SECONDS
from tests.fault.soak.verdict import judge, judge_whole
from tests.support.kafka.brokers import NODES, eventually


def unclean_election(course: Course, fault: faults.UncleanElection) -> None:
    """Archived and lost records stop the partition for good; planned ones are archived as the log now is."""
    scene, subject, brokers, noise = course.scene, course.scene.first, course.brokers, course.noise
    course.heal()
    course.verified(judge(scene))
    ends = subject.verified.ends
    partition, topic = max(ends, key=lambda number: ends[number]), subject.topic
    leader = brokers.leader(topic, partition)
    stale = noise.choice([node for node in NODES if node != leader])
    brokers.reassign(topic, (leader, stale), partition)
    brokers.allow_unclean(topic, allowed=True)
    brokers.suspend(stale)
    eventually(lambda: brokers.in_sync(topic, partition) == {leader}, f"{stale} is out of sync")
    subject.strangers().backlog(noise, partition, noise.randrange(20, 200))
    if fault.archived:
        course.heal()
        course.verified(judge(scene))
        _elect(course, topic, partition, leader=leader, stale=stale)
        course.strike(fault)
        for _ in range(2):
            course.stopped(course.run(), "DataLoss", (topic, partition))
        course.verified(judge(scene, stopped=frozenset({partition})))
        course.found(judge_whole(scene))
        return
    with running(course.job(fault=f"{FaultPoint.AFTER_PLAN}:stop@1"), scene.folder) as job:
        if job.stops(STEP_SECONDS):
            course.strike(fault)
        _elect(course, topic, partition, leader=leader, stale=stale)
        job.goes_on()
        course.end(job)
    brokers.allow_unclean(topic, allowed=False)
    brokers.reassign(topic, NODES, partition)


def _elect(course: Course, topic: str, partition: int, *, leader: int, stale: int) -> None:
    brokers, after = course.brokers, course.scene.first.strangers()
    brokers.end(leader, killed=True)
    brokers.resume(stale)
    eventually(lambda: brokers.leader(topic, partition) == stale, f"{stale} leads")
    after.backlog(course.noise, partition, course.noise.randrange(1, 300))
    brokers.up()
    brokers.whole(topic)


def transaction_outlives(course: Course, fault: faults.TransactionOutlives) -> None:
    """Records have one leader epoch, the marker the next: the archive continues."""
    subject = course.scene.first
    subject.workload.leave_open(course.noise, subject.partitions)
    course.brokers.turn_leaders(course.topics, by=course.noise.choice((1, 2)))
    subject.workload.end_transaction(course.noise)
    course.strike(fault)
    if fault.killed is not None:
        course.run(fault=f"{fault.killed}:kill@1")
    for _ in range(2):
        ending = course.run()
        if not ending.succeeded:
            course.blame("a job does not go on after a transaction that outlived its leader", ending)
            return
