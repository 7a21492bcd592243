"""The metrics of an archive job."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from archiver.telemetry.metrics import counter, gauge, histogram


class Instruments:
    """In a separate Prometheus registry."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        ProcessCollector(namespace="archiver", registry=self.registry)
        self.records: Final = counter("records", self.registry)
        self.source_bytes: Final = counter("source_bytes", self.registry)
        self.file_bytes: Final = counter("file_bytes", self.registry)
        self.files: Final = counter("files", self.registry)
        self.values: Final = counter("values", self.registry)
        self.value_bytes: Final = counter("value_bytes", self.registry)
        self.failed_values: Final = counter("failed_values", self.registry)
        self.raw_values: Final = counter("raw_values", self.registry)
        self.unrecognized_values: Final = counter("unrecognized_values", self.registry)
        self.unrecognized_bytes: Final = counter("unrecognized_bytes", self.registry)
        self.blank_values: Final = counter("blank_values", self.registry)
        self.schema_changes: Final = counter("schema_changes", self.registry)
        self.unapproved_values: Final = counter("unapproved_values", self.registry)
        self.schema_change_waits: Final = gauge("schema_change_waits", self.registry)
        self.schema_doubts: Final = counter("schema_doubts", self.registry)
        self.lost_offsets: Final = counter("lost_offsets", self.registry)
        self.commits: Final = counter("commits", self.registry)
        self.step_seconds: Final = counter("step_seconds", self.registry)
        self.tasks: Final = counter("tasks", self.registry)
        self.failures: Final = counter("failures", self.registry)
        self.waves: Final = counter("waves", self.registry)
        self.runs: Final = counter("runs", self.registry)
        self.commit_seconds: Final = histogram("commit_seconds", self.registry)
        self.next_offset: Final = gauge("next_offset", self.registry)
        self.lag_offsets: Final = gauge("lag_offsets", self.registry)
        self.lag_seconds: Final = gauge("lag_seconds", self.registry)
        self.last_committed: Final = gauge("last_committed_timestamp_seconds", self.registry)
        self.expire_needs_consent: Final = gauge("expire_needs_consent", self.registry)
        self.chore_seconds: Final = counter("chore_seconds", self.registry)
        self.chore_failures: Final = counter("chore_failures", self.registry)

    def text(self) -> bytes:
        return generate_latest(self.registry)
