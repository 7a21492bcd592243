"""All Prometheus metrics of an archiver, by name (docs/operations.md lists them)."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

COMMIT_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Instruments:
    """The metrics of one process, in a Prometheus registry of their own."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        ProcessCollector(namespace="archiver", registry=self.registry)
        self.records: Final = self._counter("records", "Records committed to the table", "topic")
        self.source_bytes: Final = self._counter(
            "source_bytes", "Bytes of record batches read, as on the wire", "topic"
        )
        self.file_bytes: Final = self._counter("file_bytes", "Bytes of data files committed", "topic")
        self.files: Final = self._counter("files", "Data files committed", "topic")
        self.values: Final = self._counter("values", "Committed keys or values that have a schema", "topic", "part")
        self.value_bytes: Final = self._counter("value_bytes", "Bytes of these", "topic", "part")
        self.failed_values: Final = self._counter("failed_values", "Of these, those not decoded", "topic", "part")
        self.raw_values: Final = self._counter("raw_values", "Of these, those kept whole in __raw__", "topic", "part")
        self.unrecognized_values: Final = self._counter(
            "unrecognized_values", "Of these, those with fields that the schema doesn't know", "topic", "part"
        )
        self.unrecognized_bytes: Final = self._counter(
            "unrecognized_bytes", "Bytes of fields that the schema doesn't know", "topic", "part"
        )
        self.blank_values: Final = self._counter(
            "blank_values", "Of these, those of which the schema knows no field", "topic", "part"
        )
        self.schema_changes: Final = self._counter("schema_changes", "New schema versions, but the first", "topic")
        self.schema_doubts: Final = self._counter(
            "schema_doubts", "Runs after which a schema was hardly right", "topic", "part", "doubt"
        )
        self.lost_offsets: Final = self._counter("lost_offsets", "Offsets recorded as lost (--accept-gap)", "topic")
        self.commits: Final = self._counter("commits", "Commits that brought something", "topic")
        self.step_seconds: Final = self._counter(
            "step_seconds", "Seconds of work: fetch, decode, write, upload in tasks; stage, commit", "topic", "step"
        )
        self.tasks: Final = self._counter(
            "tasks", "Tasks that came back: done, failed or interrupted", "topic", "outcome"
        )
        self.failures: Final = self._counter("failures", "Topics and partitions given up for a run", "topic", "error")
        self.waves: Final = self._counter("waves", "Waves planned")
        self.runs: Final = self._counter("runs", "Runs that ended: succeeded, failed or stopped", "outcome")
        self.commit_seconds: Final = Histogram(
            "archiver_commit_seconds",
            "Time from staged files to a confirmed commit",
            ("topic",),
            registry=self.registry,
            buckets=COMMIT_BUCKETS,
        )
        self.next_offset: Final = self._gauge("next_offset", "The offset to archive next", "topic", "partition")
        self.lag_offsets: Final = self._gauge(
            "lag_offsets", "Offsets up to the last stable one that are not archived", "topic", "partition"
        )
        self.lag_seconds: Final = self._gauge(
            "lag_seconds", "How long the oldest record that is not archived has waited at most", "topic", "partition"
        )
        self.last_committed: Final = self._gauge(
            "last_committed_timestamp_seconds", "When something of the topic was last committed", "topic"
        )
        self.expire_needs_consent: Final = self._gauge(
            "expire_needs_consent", 'Whether `expire = "auto"` waits for `archiver expire TOPIC --yes`', "topic"
        )

        self.chore_seconds: Final = self._counter("chore_seconds", "Seconds of background work", "topic", "chore")
        self.chore_failures: Final = self._counter(
            "chore_failures", "Failures of background work", "topic", "chore", "error"
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"archiver_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"archiver_{name}", text, labels, registry=self.registry)
