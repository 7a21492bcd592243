"""A round played: records produced, faults let loose on jobs, everything healed, archived again, and judged."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from tests.embedded_servers import Servers
from tests.fault.soak import courses, faults
from tests.fault.soak.checker import Anomaly, Defect
from tests.fault.soak.course import Course
from tests.fault.soak.deck import Round
from tests.fault.soak.results import RoundResult
from tests.fault.soak.scene import Scene, Subject
from tests.fault.soak.troubles import befall, deliver_by_hand
from tests.fault.soak.verdict import judge, judge_part, judge_whole

MOST_PARTITIONS = 6


def play(dealt: Round, scene: Scene, servers: Servers | None, *, topic: int, whole: bool) -> RoundResult:
    """Play a round on a scene; with `whole` everything that the scene ever archived is read again at the end."""
    started = time.monotonic()
    course = Course(scene, servers, dealt.noise)
    _produce(course)
    try:
        _go(course, dealt)
        if not faults.ends_topic(dealt.faults[0]):
            course.verified(judge(scene))
            if whole:
                course.found(judge_whole(scene))
    except Exception as error:  # noqa: BLE001 - a round that can't be finished is wrong, and the others go on
        text = f"{type(error).__name__}: {error}"
        course.anomalies.append(Anomaly(defect=Defect.OUTCOME, where="round", text=text))
    return RoundResult(
        number=dealt.number,
        topic=topic,
        faults=course.struck_of(dealt.faults),
        jobs=tuple(course.jobs),
        records=course.records,
        digest=f"{course.digest:032x}",
        seconds=round(time.monotonic() - started, 1),
        anomalies=tuple(map(str, course.anomalies)),
    )


def _produce(course: Course) -> None:
    noise = course.noise
    for subject in course.scene.subjects:
        if subject.partitions < MOST_PARTITIONS and noise.random() < 0.1:
            subject.add_partition()
        if noise.random() < 0.15:
            subject.evolve()
        subject.workload.produce(noise, subject.partitions, noise.randrange(200, 1_000))
        if noise.random() < 0.3:
            subject.workload.backlog(noise, noise.randrange(subject.partitions), 1_500)


def _go(course: Course, dealt: Round) -> None:
    """The faults, and everything after them up to the verdict."""
    match dealt.faults[0]:
        case faults.LogCut() as fault:
            courses.log_cut(course, fault)
            return
        case faults.TopicRecreated() as fault:
            courses.topic_recreated(course, fault)
            return
        case faults.CatalogAway() as fault:
            courses.catalog_away(course, fault)
        case faults.RegistryLost() as fault:
            courses.registry_lost(course, fault)
        case faults.RegistrySplit() as fault:
            courses.registry_split(course, fault)
        case faults.OthersExpire() as fault:
            courses.others_expire(course, fault)
        case faults.OrphansRemoved() as fault:
            courses.orphans_removed(course, fault)
        case faults.RecordsDeleted() as fault:
            courses.records_deleted(course, fault)
        case _:
            _befall(course, dealt)
    _heal(course, dealt)


def _befall(course: Course, dealt: Round) -> None:
    subject, noise = course.scene.first, course.noise
    if noise.random() < 0.3:
        subject.workload.leave_open(noise, subject.partitions)
        subject.workload.produce(noise, subject.partitions, 100)
    with _trickle(subject, noise, wanted=noise.random() < 0.3 and not faults.restarts_servers(dealt.faults[0])):
        befall(course, dealt.faults)


def _heal(course: Course, dealt: Round) -> None:
    """Nothing is in the way any more; what is archived by now must be right, and the rest follows."""
    scene = course.scene
    scene.ground.catalog.calm()
    scene.ground.store.calm()
    if faults.restarts_servers(dealt.faults[0]):
        course.servers.up()
    course.found(judge_part(scene))
    scene.first.workload.end_transaction(course.noise)
    course.produce(course.noise.randrange(20, 200))
    course.heal()
    deliver_by_hand(course, dealt.faults)


@contextmanager
def _trickle(subject: Subject, noise: Random, *, wanted: bool) -> Iterator[None]:
    """Records keep coming while the block runs."""
    if not wanted:
        yield
        return
    over, drops = threading.Event(), Random(noise.random())
    workload = subject.producers("trickle")

    def work() -> None:
        while not over.wait(0.05):
            workload.produce(drops, subject.partitions, 10)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
