"""A round in progress."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fault.soak import faults
from tests.fault.soak.checker import Anomaly, Defect
from tests.fault.soak.faults import Fault, described
from tests.fault.soak.jobs import Ending, Job, Running, running
from tests.fault.soak.scene import Scene
from tests.fault.soak.told import problems
from tests.fault.soak.verdict import Verdict
from tests.support.kafka.brokers import Brokers
from tests.support.servers.embedded_servers import Servers

JOB_SECONDS = 600.0
"""A round whose job loses Python workers takes 25 to 60 s, and several times that on a busy machine."""
LASTING = frozenset({"DataLoss", "RolledBack", "RowsRemoved"})
"""What stays until somebody does something about it."""
HEALING_RUNS = 2
"""How many runs may be needed until everything is archived once nothing is wrong any more."""


class Course:
    def __init__(self, scene: Scene, brokers: Brokers | None, noise: Random) -> None:
        self.scene = scene
        self.noise = noise
        self.jobs: list[str] = []
        self.anomalies: list[Anomaly] = []
        self.records = 0
        self.digest = 0
        self._brokers = brokers
        self._struck: dict[int, bool] = {}

    @property
    def brokers(self) -> Brokers:
        assert self._brokers is not None, "this fault needs servers of its own"
        return self._brokers

    @property
    def servers(self) -> Servers:
        return self.brokers.servers

    def part(self, server: faults.Server) -> str:
        """Return the affected part; of Kafka the leader of the first topic's first partition."""
        return f"kafka-{self.brokers.leader(self.scene.first.topic)}" if server == "kafka" else server

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(subject.topic for subject in self.scene.subjects)

    def job(self, **options: Any) -> Job:
        return Job(config=self.scene.config, **options)

    def run(self, **options: Any) -> Ending:
        with running(self.job(**options), self.scene.folder) as job:
            return self.end(job)

    def end(self, job: Running) -> Ending:
        ending = job.ending(JOB_SECONDS)
        self.jobs.append(ending.said)
        if ending.unforeseen:
            self.blame("a job ended in an error nobody foresaw", ending)
        return ending

    def heal(self) -> None:
        for _ in range(HEALING_RUNS):
            ending = self.run()
            if ending.succeeded:
                return
        self.blame("a job fails though nothing is wrong any more", ending)

    def stopped(self, ending: Ending, kind: str, *places: tuple[str, int | None]) -> None:
        """Check that a job stopped exactly these topics (partition None) or partitions, with a reason.

        If it lasts, `status` must report it too.
        """
        said = sorted((failure.kind, failure.topic, str(failure.partition)) for failure in ending.failures)
        if said != sorted((kind, topic, str(partition)) for topic, partition in places):
            self.blame(f"a job was to stop {places} with {kind}", ending)
        if kind in LASTING:
            for topic in {topic for topic, _ in places}:
                self.told(topic, ending)

    def told(self, topic: str, ending: Ending) -> None:
        silent = [] if ending.exit_code == 1 else [f"exit code {ending.exit_code}"]
        if not problems(self.scene.direct, topic):
            silent.append("status")
        if silent:
            text = f"{topic} is not as it should be, and nothing in {' or '.join(silent)} says so"
            self.anomalies.append(Anomaly(defect=Defect.UNTOLD, where="job", text=text))

    @property
    def every_topic(self) -> tuple[tuple[str, None], ...]:
        return tuple((subject.topic, None) for subject in self.scene.subjects)

    def produce(self, records: int) -> None:
        for subject in self.scene.subjects:
            subject.workload.produce(self.noise, subject.partitions, records)

    def blame(self, text: str, ending: Ending | None = None) -> None:
        said = (
            f"; it said {[str(failure) for failure in ending.failures]} {ending.said}: {ending.log[-1500:]}"
            if ending
            else ""
        )
        self.anomalies.append(Anomaly(defect=Defect.OUTCOME, where="job", text=text + said))

    def strike(self, fault: Fault, *, struck: bool = True) -> None:
        self._struck[id(fault)] = struck or self._struck.get(id(fault), False)

    def verified(self, verdict: Verdict) -> None:
        self.records += verdict.records
        self.digest = (self.digest + int(verdict.digest, 16)) % 2**128
        self.found(verdict)

    def found(self, verdict: Verdict) -> None:
        self.anomalies += verdict.anomalies

    def found_midway(self, verdict: Verdict) -> None:
        self.found(verdict)
        lost = [anomaly for anomaly in verdict.anomalies if anomaly.defect is Defect.LOST]
        for subject in self.scene.subjects:
            if any(subject.table in anomaly.where for anomaly in lost) and not problems(
                self.scene.direct, subject.topic
            ):
                text = f"{subject.topic} lacks records, and status says nothing"
                self.anomalies.append(Anomaly(defect=Defect.UNTOLD, where="status", text=text))

    def struck_of(self, dealt: tuple[Fault, ...]) -> tuple[dict[str, Any], ...]:
        return tuple(described(fault) | {"struck": self._struck.get(id(fault), False)} for fault in dealt)
