"""Plays a round: produce, inject faults, heal, archive and judge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any, Final

from archiver.config import load_config
from archiver.upkeep.journal_upkeep import SumJournals
from tests.fault.soak import courses, elections, faults, others, removals, rewrites, sides
from tests.fault.soak.checker import Anomaly, Defect
from tests.fault.soak.course import Course
from tests.fault.soak.deck import Round
from tests.fault.soak.results import RoundResult
from tests.fault.soak.scene import Scene, Subject
from tests.fault.soak.troubles import befall, deliver_by_hand
from tests.fault.soak.verdict import judge, judge_part, judge_whole
from tests.fault.soak.verify_verdict import judge_verified
from tests.support.kafka.brokers import Brokers

MOST_PARTITIONS = 6
SUMMED_EVERY = 2
"""After every second round the journal is summed up; the next rounds read summaries."""


def play(dealt: Round, scene: Scene, brokers: Brokers | None, *, topic: int, whole: bool) -> RoundResult:
    started = time.monotonic()
    course = Course(scene, brokers, dealt.noise)
    _produce(course)
    try:
        _go(course, dealt)
        if not faults.ends_topic(dealt.faults[0]):
            if dealt.number % SUMMED_EVERY == 0:
                _sum_up(scene)
            course.verified(judge(scene))
            if whole:
                course.found(judge_verified(scene, verdict=judge_whole(scene)))
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


def _sum_up(scene: Scene) -> None:
    config = load_config(scene.direct)
    if config.archive.journal is None:
        return
    failed: list[str] = []
    topics = tuple(subject.topic for subject in scene.subjects)
    done = SumJournals(config=config, topics=topics, older_than=0.0).run(
        lambda event: failed.append(f"{event.table}: {event.error}") if event.error else None
    )
    if not done:
        raise AssertionError(f"journals can't be summed up: {failed}")


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


_COURSES: Final[Mapping[type[faults.Fault], Callable[[Course, Any], None]]] = {
    faults.LogCut: courses.log_cut,
    faults.TopicRecreated: courses.topic_recreated,
    faults.UncleanElection: elections.unclean_election,
    faults.TransactionOutlives: elections.transaction_outlives,
    faults.StaleLoad: rewrites.stale_load,
    faults.CatalogAway: courses.catalog_away,
    faults.RegistryLost: courses.registry_lost,
    faults.RegistrySplit: courses.registry_split,
    faults.OthersExpire: courses.others_expire,
    faults.OrphansRemoved: courses.orphans_removed,
    faults.RecordsDeleted: courses.records_deleted,
    faults.RolledBack: others.rolled_back,
    faults.RowsDeleted: others.rows_deleted,
    faults.CompactKilled: rewrites.compact_killed,
    faults.RetireRaces: removals.retire_races,
    faults.RetiredBeneath: removals.retired_beneath,
    faults.SpecChanged: others.spec_changed,
    faults.StoreEmpty: others.store_empty,
    faults.ManyTopics: sides.many_topics,
    faults.CredentialsExpire: sides.credentials_expire,
}
"""Faults with a special course; the remaining ones affect a running job."""


def _go(course: Course, dealt: Round) -> None:
    first = dealt.faults[0]
    if (own := _COURSES.get(type(first))) is not None:
        own(course, first)
    else:
        _befall(course, dealt)
    if not faults.ends_topic(first):
        _heal(course, dealt)


def _befall(course: Course, dealt: Round) -> None:
    subject, noise = course.scene.first, course.noise
    amid = isinstance(dealt.faults[0], faults.LeaderMoves | faults.RollingRestart)
    if noise.random() < 0.3 or amid:
        subject.workload.leave_open(noise, subject.partitions)
        subject.workload.produce(noise, subject.partitions, 100)
    alone = faults.restarts_servers(dealt.faults[0])
    with _trickle(subject, noise, wanted=(noise.random() < 0.3 and not alone) or amid):
        befall(course, dealt.faults)


def _heal(course: Course, dealt: Round) -> None:
    scene = course.scene
    scene.ground.catalog.calm()
    scene.ground.store.calm()
    if faults.restarts_servers(dealt.faults[0]):
        course.servers.up()
        course.brokers.whole(*course.topics)
    course.found_midway(judge_part(scene))
    scene.first.workload.end_transaction(course.noise)
    course.produce(course.noise.randrange(20, 200))
    course.heal()
    deliver_by_hand(course, dealt.faults)


@contextmanager
def _trickle(subject: Subject, noise: Random, *, wanted: bool) -> Iterator[None]:
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
