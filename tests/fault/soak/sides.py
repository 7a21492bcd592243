"""Rounds on separate topics, beyond one job's apparent means."""

from __future__ import annotations

from confluent_kafka.admin import NewTopic

from archiver.config import load_config
from tests.fault.soak import faults
from tests.fault.soak.checker import Anomaly, Defect
from tests.fault.soak.course import Course
from tests.fault.soak.jobs import Job, running
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.servers.stack import Stack, unique

_TIMEOUT = 60.0
_RECORDS = 3
_READ_WHOLE = 5
_PARTITIONS, _BYTES = 2, 2_000


def many_topics(course: Course, fault: faults.ManyTopics) -> None:
    stack, scene = course.scene.ground.stack, course.scene
    names = _created(stack, fault.count)
    try:
        producer = stack.producer()
        for name in names:
            for number in range(_RECORDS):
                producer.produce(name, b"%d" % number)
            producer.poll(0)
        if left := producer.flush(_TIMEOUT):
            raise TimeoutError(f"{left} records were not delivered")
        config = stack.config({name: {} for name in names})
        faulty = [] if fault.killed is None else [Job(config=config, fault=f"{fault.killed}:kill@20")]
        for job in (*faulty, Job(config=config)):
            with running(job, scene.folder) as started:
                ending = course.end(started)
        course.strike(fault)
        if not ending.succeeded:
            course.blame(f"a job can't archive {fault.count} topics", ending)
            return
        loaded, catalog = load_config(config), stack.catalog()
        for name in names:
            snapshot = catalog.load_table(loaded.topic(name).table).current_snapshot()
            summary = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
            if (rows := summary.get("total-records")) != str(_RECORDS):
                course.anomalies.append(Anomaly(defect=Defect.LOST, where=name, text=f"{rows} rows of {_RECORDS}"))
        for name in course.noise.sample(names, _READ_WHOLE):
            if from_archive(config, name, 1) != from_kafka(stack, name, 1):
                course.anomalies.append(Anomaly(defect=Defect.CHANGED, where=name, text="its replay isn't Kafka's"))
    finally:
        stack.admin.delete_topics(names, operation_timeout=_TIMEOUT)


def credentials_expire(course: Course, fault: faults.CredentialsExpire) -> None:
    from tests.support.storage.vending_store import vending_store

    stack, noise = course.scene.ground.stack, course.noise
    topic, folder = stack.topic(_PARTITIONS), stack.scratch / unique("vending")
    folder.mkdir()
    records = ({"value": noise.randbytes(_BYTES), "partition": n % _PARTITIONS} for n in range(fault.records))
    stack.produce(topic, *records)
    with vending_store(folder, access_key=stack.access_key, secret_key=stack.secret_key) as vending:
        config = stack.config(
            {topic: {"target_file_size": "1MiB"}}, catalog=vending.catalog, kafka={"fetch.max.bytes": "1000000"}
        )
        vending.store.uses = fault.uses
        with running(Job(config=config), course.scene.folder) as started:
            ending = course.end(started)
        course.strike(fault, struck=bool(vending.store.ended))
        vending.store.uses = None
        if not ending.succeeded:
            course.blame("a job ends with the credentials that it began with", ending)
        elif from_archive(config, topic, _PARTITIONS) != from_kafka(stack, topic, _PARTITIONS):
            course.anomalies.append(Anomaly(defect=Defect.CHANGED, where=topic, text="its replay isn't Kafka's"))


def _created(stack: Stack, count: int) -> list[str]:
    names = [unique("many") for _ in range(count)]
    made = stack.admin.create_topics([NewTopic(name, 1, 1) for name in names], operation_timeout=_TIMEOUT)
    for future in made.values():
        future.result(_TIMEOUT)
    return names
