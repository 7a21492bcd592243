"""Faults during a job, alone or in pairs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeAlias

from pyiceberg.exceptions import CommitFailedException

from tests.fault.soak import faults
from tests.fault.soak.course import Course
from tests.fault.soak.faults import Fault
from tests.fault.soak.jobs import Running, running
from tests.support.catalog.lossy_catalog import Delivery
from tests.support.catalog.lossy_catalog import Fault as CommitFault
from tests.support.kafka.brokers import NODES
from tests.support.timing.eventually import eventually

STEP_SECONDS = 60.0
"""How long a job may take to the step of a fault."""
_POLL = 0.005
_HELD_SECONDS = 600.0
_WhileSuspended: TypeAlias = (
    faults.Overtaken | faults.ServerRestarts | faults.ServerStalls | faults.LeaderMoves | faults.RollingRestart
)


def befall(course: Course, dealt: Sequence[Fault]) -> None:
    with ExitStack() as over:
        for fault in dealt:
            over.enter_context(_around(course, fault))
        first, *more = dealt
        options = _options(first) | (_options(more[0]) if more else {})
        count = max((fault.count for fault in dealt if isinstance(fault, faults.Rivals)), default=1)
        job = course.job(**options)
        jobs = [over.enter_context(running(job, course.scene.folder)) for _ in range(count)]
        for fault in dealt:
            _meet(course, fault, jobs)
        for task in jobs:
            ending = course.end(task)
            for fault in dealt:
                if isinstance(fault, faults.KillAtPoint | faults.KillLater):
                    lost = any(failure.kind == "WorkerLost" for failure in ending.failures)
                    course.strike(fault, struck=ending.killed or lost)


def _options(fault: Fault) -> dict[str, object]:
    match fault:
        case faults.KillAtPoint():
            return {"fault": f"{fault.point}:kill@{fault.passage}"} | ({"spark": True} if fault.spark else {})
        case faults.KillLater():
            return {"spark": True} if fault.spark else {}
        case faults.Overtaken():
            return {"fault": f"{fault.point}:stop@{fault.passage}"}
        case faults.ServerRestarts() | faults.ServerStalls() | faults.LeaderMoves() | faults.RollingRestart():
            return {"fault": f"{fault.point}:stop@1"}
        case faults.Rivals():
            return {"with_lease": False}
        case _:
            return {}


@contextmanager
def _around(course: Course, fault: Fault) -> Iterator[None]:
    catalog, store = course.scene.ground.catalog, course.scene.ground.store
    before = catalog.struck, store.struck
    match fault:
        case faults.CommitFails():
            for _ in range(fault.times):
                catalog.faults.put(fault.fault)
            yield
            course.strike(fault, struck=catalog.struck > before[0])
        case faults.CommitLate():
            catalog.delivery = fault.delivery
            catalog.faults.put(CommitFault.HOLD)
            yield
            course.strike(fault, struck=catalog.struck > before[0])
        case faults.StoreFails():
            store.arm(fault.fault, times=fault.times, skip=fault.skip)
            yield
            course.strike(fault, struck=store.struck > before[1])
        case faults.OthersCommit():
            with _others(course) as done:
                yield
            course.strike(fault, struck=bool(done))
        case _:
            yield


def _meet(course: Course, fault: Fault, jobs: Sequence[Running]) -> None:
    job = jobs[0]
    match fault:
        case faults.KillLater():
            if not job.ends(fault.seconds):
                job.kill()
        case faults.Terminate():
            if not job.ends(fault.seconds):
                job.terminate()
                course.strike(fault)
        case faults.Rivals():
            course.strike(fault)
        case _ if isinstance(fault, _WhileSuspended):
            if job.stops(STEP_SECONDS):
                course.strike(fault)
                _while_suspended(course, fault, job)
        case faults.CommitLate(killed=True):
            kill_once_held(course, job)
        case _:
            pass


def _while_suspended(course: Course, fault: _WhileSuspended, job: Running) -> None:
    match fault:
        case faults.Overtaken():
            course.run(with_lease=False)
            job.goes_on()
        case faults.ServerRestarts():
            course.servers.end(course.part(fault.server), killed=fault.killed)
            job.goes_on()
            course.servers.up()
        case faults.ServerStalls():
            part = course.part(fault.server)
            course.servers.suspend(part)
            job.goes_on()
            time.sleep(fault.seconds)
            course.servers.resume(part)
        case faults.LeaderMoves():
            course.brokers.turn_leaders(course.topics)
            job.goes_on()
            for _ in range(fault.times - 1):
                course.brokers.turn_leaders(course.topics)
        case faults.RollingRestart():
            job.goes_on()
            for node in NODES:
                course.brokers.end(node, killed=fault.killed)
                course.brokers.up()
                course.brokers.whole(*course.topics)


def kill_once_held(course: Course, job: Running) -> None:
    catalog = course.scene.ground.catalog
    eventually(lambda: catalog.holds or not job.alive, "a request is held", seconds=_HELD_SECONDS, every=_POLL)
    job.kill()


def deliver_by_hand(course: Course, dealt: Sequence[Fault]) -> None:
    catalog = course.scene.ground.catalog
    if not any(isinstance(fault, faults.CommitLate) for fault in dealt):
        return
    was_held, before = catalog.holds, len(catalog.delivered)
    catalog.deliver_held()
    if was_held and any(status < 400 for status in catalog.delivered[before:]):
        course.blame(f"the catalog took a commit on top of what had replaced it: {catalog.delivered[before:]}")
    catalog.delivery = Delivery.BY_HAND


@contextmanager
def _others(course: Course) -> Iterator[list[int]]:
    scene, done, over = course.scene, list[int](), threading.Event()

    def work() -> None:
        catalog = scene.ground.stack.catalog()
        while not over.wait(0.02):
            if catalog.table_exists(scene.first.table):
                table = catalog.load_table(scene.first.table)
                with suppress(CommitFailedException), table.transaction() as transaction:
                    transaction.set_properties({"somebody.else": str(len(done))})
                    done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()
