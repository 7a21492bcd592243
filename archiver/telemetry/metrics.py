"""All Prometheus metrics. A test compares them with the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Unit: TypeAlias = Literal[
    "records",
    "offsets",
    "values",
    "bytes",
    "files",
    "seconds",
    "time",
    "events",
    "connections",
    "members",
    "nodes",
    "chunks",
    "flag",
    "number",
]
"""What a sample counts. A `time` is in seconds since 1970, a `flag` is 0 or 1."""
Source: TypeAlias = Literal[
    "job events",
    "retirements",
    "chores",
    "answers",
    "budgets",
    "connections",
    "cache",
    "workers",
    "groups",
    "nodes",
    "loop",
    "topics",
    "access log",
    "intake",
]
"""The part of the archive job (the first three) or of a server whose numbers they are."""

_PREFIX: Final = "archiver_"
_COMMIT_BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_ANSWER_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """`name` has no prefix `archiver_` and no suffix `_total`."""

    name: str
    kind: Kind
    unit: Unit
    source: Source
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def family(self) -> str:
        return _PREFIX + self.name

    @property
    def documented(self) -> str:
        return f"{self.family}_total" if self.kind == "counter" else self.family

    @property
    def is_of_servers(self) -> bool:
        return self.name.startswith("serve_")

    @property
    def is_of_intake(self) -> bool:
        return self.name.startswith("flight_")


def _row(  # noqa: PLR0917 - as the table is read
    kind: Kind,
    name: str,
    unit: Unit,
    source: Source,
    text: str,
    labels: str = "",
    *,
    buckets: tuple[float, ...] = (),
) -> MetricRow:
    return MetricRow(
        name=name, kind=kind, unit=unit, source=source, text=text, labels=tuple(labels.split()), buckets=buckets
    )


METRICS: Final[Mapping[str, MetricRow]] = {
    row.name: row
    for row in (
        _row("counter", "records", "records", "job events", "Records committed to the table", "topic"),
        _row("counter", "source_bytes", "bytes", "job events", "Bytes of record batches read, as on the wire", "topic"),
        _row("counter", "file_bytes", "bytes", "job events", "Bytes of data files committed", "topic"),
        _row("counter", "files", "files", "job events", "Data files committed", "topic"),
        _row("counter", "values", "values", "job events", "Committed keys or values that have a schema", "topic part"),
        _row("counter", "value_bytes", "bytes", "job events", "Bytes of these", "topic part"),
        _row("counter", "failed_values", "values", "job events", "Of these, those not decoded", "topic part"),
        _row("counter", "raw_values", "values", "job events", "Of these, those kept whole in __raw__", "topic part"),
        _row(
            "counter",
            "unrecognized_values",
            "values",
            "job events",
            "Of these, those with fields that the schema doesn't know",
            "topic part",
        ),
        _row(
            "counter",
            "unrecognized_bytes",
            "bytes",
            "job events",
            "Bytes of fields that the schema doesn't know",
            "topic part",
        ),
        _row(
            "counter",
            "blank_values",
            "values",
            "job events",
            "Of these, those of which the schema knows no field",
            "topic part",
        ),
        _row("counter", "schema_changes", "events", "job events", "New schema versions, but the first", "topic"),
        _row(
            "counter",
            "unapproved_values",
            "values",
            "job events",
            "Keys and values kept raw until a schema change is approved",
            "topic part",
        ),
        _row(
            "gauge",
            "schema_change_waits",
            "flag",
            "job events",
            "Whether a schema change waits for `archiver schema approve TOPIC`",
            "topic",
        ),
        _row(
            "counter",
            "schema_doubts",
            "events",
            "job events",
            "Runs after which a schema was hardly right",
            "topic part doubt",
        ),
        _row("counter", "lost_offsets", "offsets", "job events", "Offsets recorded as lost (--accept-gap)", "topic"),
        _row("counter", "commits", "events", "job events", "Commits that brought something", "topic"),
        _row(
            "counter",
            "step_seconds",
            "seconds",
            "job events",
            "Seconds of work: fetch, decode, write, upload in tasks; stage, commit",
            "topic step",
        ),
        _row(
            "counter",
            "tasks",
            "events",
            "job events",
            "Tasks that came back: done, failed or interrupted",
            "topic outcome",
        ),
        _row("counter", "failures", "events", "job events", "Topics and partitions given up for a run", "topic error"),
        _row("counter", "waves", "events", "job events", "Waves planned"),
        _row("counter", "runs", "events", "job events", "Runs that ended: succeeded, failed or stopped", "outcome"),
        _row(
            "histogram",
            "commit_seconds",
            "seconds",
            "job events",
            "Time from staged files to a confirmed commit",
            "topic",
            buckets=_COMMIT_BUCKETS,
        ),
        _row("gauge", "next_offset", "number", "job events", "The offset to archive next", "topic partition"),
        _row(
            "gauge",
            "lag_offsets",
            "offsets",
            "job events",
            "Offsets up to the last stable one that are not archived",
            "topic partition",
        ),
        _row(
            "gauge",
            "lag_seconds",
            "seconds",
            "job events",
            "How long the oldest record that is not archived has waited at most",
            "topic partition",
        ),
        _row(
            "gauge",
            "last_committed_timestamp_seconds",
            "time",
            "job events",
            "When something of the topic was last committed",
            "topic",
        ),
        _row(
            "gauge",
            "expire_needs_consent",
            "flag",
            "retirements",
            'Whether `expire = "auto"` waits for `archiver expire TOPIC --yes`',
            "topic",
        ),
        _row("counter", "chore_seconds", "seconds", "chores", "Seconds of background work", "topic chore"),
        _row("counter", "chore_failures", "events", "chores", "Failures of background work", "topic chore error"),
        _row("counter", "serve_requests", "events", "answers", "Requests answered", "api error"),
        _row("counter", "serve_sent_bytes", "bytes", "answers", "Bytes of answers", "api"),
        _row(
            "counter", "serve_partition_errors", "events", "answers", "Errors of single partitions in fetches", "error"
        ),
        _row(
            "counter",
            "serve_over_budget",
            "events",
            "budgets",
            "Requests refused because their principal has taken what it may",
            "budget",
        ),
        _row("gauge", "serve_connections", "connections", "connections", "Connected clients"),
        _row("gauge", "serve_cache_bytes", "bytes", "cache", "Bytes of encoded batches in memory"),
        _row("gauge", "serve_cache_chunks", "chunks", "cache", "Chunks of encoded batches in memory"),
        _row("counter", "serve_cache_hits", "chunks", "cache", "Chunks that were given out of memory"),
        _row("counter", "serve_cache_misses", "chunks", "cache", "Chunks that had to be decoded"),
        _row("gauge", "serve_disk_cache_bytes", "bytes", "cache", "Bytes of encoded batches on disk, for slow readers"),
        _row("counter", "serve_disk_cache_hits", "chunks", "cache", "Chunks that were read from disk"),
        _row("counter", "serve_decode_seconds", "seconds", "workers", "Seconds that threads read and encoded"),
        _row("gauge", "serve_groups", "number", "groups", "Groups with members that this node coordinates"),
        _row("gauge", "serve_group_members", "members", "groups", "Their members"),
        _row("gauge", "serve_nodes", "nodes", "nodes", "Live nodes of the cluster, as this one last heard"),
        _row(
            "gauge",
            "serve_view",
            "number",
            "nodes",
            "Counts nodes that came or went; the same on all nodes in agreement",
        ),
        _row("gauge", "serve_leased", "flag", "nodes", "1 while this node may coordinate groups"),
        _row("counter", "serve_loop_seconds", "seconds", "loop", "Seconds of the event loop that requests took"),
        _row("gauge", "serve_turns_waiting", "connections", "loop", "Connections that wait for a turn"),
        _row("counter", "serve_turns_over_budget", "events", "loop", "Times that a client over its budget had to wait"),
        _row(
            "counter",
            "serve_closed_connections",
            "connections",
            "connections",
            "Connections closed as their client did something wrong",
        ),
        _row("gauge", "serve_fetch_sessions", "number", "connections", "Fetch sessions of all connections"),
        _row(
            "counter", "serve_access_log_left_out", "events", "access log", "Lines that the access log had no time for"
        ),
        _row(
            "counter", "flight_batches", "events", "intake", "Batches of Flight clients, refused ones included", "topic"
        ),
        _row("counter", "flight_refused_batches", "events", "intake", "Of these, refused by the log", "topic"),
        _row("counter", "flight_rows", "records", "intake", "Rows acknowledged", "topic"),
        _row("counter", "flight_batch_bytes", "bytes", "intake", "Bytes of these", "topic"),
        _row("counter", "flight_files", "files", "intake", "Data files committed", "topic"),
        _row("counter", "flight_file_bytes", "bytes", "intake", "Bytes of these files", "topic"),
        _row("counter", "flight_table_rows", "records", "intake", "Rows committed to the table", "topic"),
        _row(
            "counter", "flight_turn_failures", "events", "intake", "Times that rows didn't get into the table", "topic"
        ),
        _row("counter", "flight_segments", "events", "intake", "Segments that logs have begun", "topic"),
        _row("gauge", "flight_waiting_bytes", "bytes", "intake", "Bytes of the log that the table lacks", "topic"),
        _row("gauge", "flight_log_bytes", "bytes", "intake", "Bytes of the log on disk", "topic"),
        _row("gauge", "flight_log_ended", "flag", "intake", "1 if the log takes in nothing more", "topic"),
        _row(
            "gauge", "flight_next_offset", "number", "intake", "The next offset of acknowledged rows", "topic partition"
        ),
        _row("gauge", "flight_unacknowledged_bytes", "bytes", "intake", "Bytes of batches that wait for their answer"),
        _row(
            "histogram",
            "flight_append_seconds",
            "seconds",
            "intake",
            "Time of writing and syncing a group of batches",
            "topic",
            buckets=_ANSWER_BUCKETS,
        ),
        _row(
            "histogram",
            "flight_upload_seconds",
            "seconds",
            "intake",
            "Time of writing and uploading the files of a turn",
            "topic",
            buckets=_COMMIT_BUCKETS,
        ),
        _row(
            "histogram",
            "flight_turn_seconds",
            "seconds",
            "intake",
            "Time from the log to the table",
            "topic",
            buckets=_COMMIT_BUCKETS,
        ),
        _row("gauge", "serve_end_offset", "number", "topics", "The offset after the last record", "topic partition"),
        _row(
            "gauge",
            "serve_group_lag",
            "offsets",
            "groups",
            "Offsets that a group has not committed yet",
            "group topic partition",
        ),
        _row(
            "histogram",
            "serve_request_seconds",
            "seconds",
            "answers",
            "Time from a request to its answer; fetches wait as long as clients want to",
            "api",
            buckets=_ANSWER_BUCKETS,
        ),
    )
}
"""All metrics by name."""


def counter(name: str, registry: CollectorRegistry) -> Counter:
    row = _of(name, "counter")
    return Counter(row.family, row.text, row.labels, registry=registry)


def gauge(name: str, registry: CollectorRegistry) -> Gauge:
    row = _of(name, "gauge")
    return Gauge(row.family, row.text, row.labels, registry=registry)


def histogram(name: str, registry: CollectorRegistry) -> Histogram:
    row = _of(name, "histogram")
    return Histogram(row.family, row.text, row.labels, registry=registry, buckets=row.buckets)


def _of(name: str, kind: Kind) -> MetricRow:
    row = METRICS[name]
    assert row.kind == kind, name
    return row
