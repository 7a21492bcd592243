"""Rounds on rewrites that are killed."""

from __future__ import annotations

from archiver.config import load_config
from catalog.registry import Registry
from tests.fault.soak import faults
from tests.fault.soak.course import Course
from tests.fault.soak.jobs import Verb, running
from tests.fault.soak.scene import Subject
from tests.fault.soak.troubles import STEP_SECONDS
from tests.fault.soak.verdict import judge, judge_rewritten
from tests.fault.soak.verify_verdict import judge_verified

_COMMITS = 3
_LOADS = 2


def compact_killed(course: Course, fault: faults.CompactKilled) -> None:
    scene = course.scene
    for _ in range(_COMMITS):
        course.produce(60)
        course.heal()
    course.verified(judge(scene))
    course.produce(60)
    if fault.beside:
        with running(course.job(verb=Verb.COMPACT, fault=f"{fault.point}:stop@1"), scene.folder) as job:
            course.strike(fault, struck=job.stops(STEP_SECONDS))
            course.heal()
            job.goes_on()
            course.end(job)
    else:
        course.strike(fault, struck=course.run(verb=Verb.COMPACT, fault=f"{fault.point}:kill@1").killed)
        course.heal()
    ending = course.run(verb=Verb.COMPACT)
    if not ending.succeeded:
        course.blame("small files weren't put together", ending)
    for subject in scene.subjects:
        if not subject.verified.rewritten and (odd := _unknown_files(course, subject)):
            course.blame(f"{subject.topic}: registry and table name different files: {odd[:3]}")
        subject.verified.rewritten = True
    course.heal()
    course.verified(judge_verified(scene, verdict=judge_rewritten(scene)))


def stale_load(course: Course, fault: faults.StaleLoad) -> None:
    scene, catalog = course.scene, course.scene.ground.catalog
    for _ in range(_COMMITS):
        course.produce(60)
        course.heal()
    course.verified(judge(scene))
    course.produce(60)
    catalog.faults.put(fault.answer)
    catalog.older_loads = [fault.behind] * _LOADS
    course.run(verb=Verb.COMPACT if fault.job == "compact" else Verb.ARCHIVE)
    course.strike(fault, struck=len(catalog.older_loads) < _LOADS)
    catalog.calm()
    course.heal()
    if fault.job == "compact":
        for subject in scene.subjects:
            subject.verified.rewritten = True
        course.verified(judge_verified(scene, verdict=judge_rewritten(scene)))


def _unknown_files(course: Course, subject: Subject) -> list[str]:
    table = subject.stack.catalog().load_table(subject.table)
    listed = set(table.inspect.data_files().column("file_path").to_pylist())
    with Registry(load_config(course.scene.direct).registry.dsn) as registry:
        (topic,) = (row for row in registry.topics.every() if row.topic == subject.topic)
        registered = {file.path for range_ in registry.rows.expected_ranges(topic) for file in range_.files}
    return sorted(listed ^ registered)
