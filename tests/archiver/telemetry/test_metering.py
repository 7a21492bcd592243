"""Events as metrics, health and spans."""

from __future__ import annotations

import io
import json
from typing import get_args

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client.parser import text_string_to_metric_families

from archiver.chores.runner import ChoreEnded
from archiver.errors import ConsentMissing, StorageUnavailable
from archiver.ingest.events import JobEvent
from archiver.observer import all_of
from archiver.telemetry.health import Health
from archiver.telemetry.instruments import Instruments
from archiver.telemetry.metering import ChoreMetering, ExpireMetering, Metering
from archiver.telemetry.tracing import Spans, tracer_to
from archiver.terminal.archive_screen import ArchiveScreen
from archiver.terminal.json_lines import JsonLines
from archiver.upkeep.retire.report import ExpireFinished, ExpireReport, TopicRetired
from catalog.errors import CatalogUnreachable
from schema_mapping.errors import ContextError
from tests.support.archive.job_events import play, run


@pytest.fixture
def health() -> Health:
    return Health(stalled_after=60)


@pytest.fixture
def samples(health: Health) -> dict[tuple[str, ...], float]:
    instruments = Instruments()
    play(Metering(instruments, health))
    return {
        (sample.name.removeprefix("archiver_"), *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(instruments.text().decode())
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("sample", "value"),
    [
        (("records_total", "orders"), 90.0),
        (("source_bytes_total", "orders"), 9_000.0),
        (("file_bytes_total", "orders"), 5_000.0),
        (("files_total", "orders"), 1.0),
        (("values_total", "orders", "value"), 90.0),
        (("value_bytes_total", "orders", "value"), 900.0),
        (("raw_values_total", "orders", "value"), 4.0),
        (("failed_values_total", "orders", "value"), 1.0),
        (("unrecognized_values_total", "orders", "value"), 60.0),
        (("unrecognized_bytes_total", "orders", "value"), 300.0),
        (("blank_values_total", "orders", "value"), 2.0),
        (("schema_changes_total", "orders"), 1.0),
        (("schema_doubts_total", "orders", "value", "unknown"), 1.0),
        (("lost_offsets_total", "orders"), 40.0),
        (("commits_total", "orders"), 1.0),
        (("commit_seconds_count", "orders"), 1.0),
        (("tasks_total", "orders", "done"), 1.0),
        (("tasks_total", "orders", "failed"), 1.0),
        (("failures_total", "orders", "DataLoss"), 1.0),
        (("waves_total",), 1.0),
        (("runs_total", "failed"), 1.0),
        (("step_seconds_total", "orders", "decode"), 1.0),
        (("step_seconds_total", "orders", "upload"), 0.25),
        (("step_seconds_total", "orders", "commit"), 0.4),
        (("next_offset", "orders", "0"), 100.0),
        (("lag_offsets", "orders", "0"), 100.0),
        (("lag_offsets", "orders", "1"), 10.0),
    ],
)
def test_a_run_is_counted(samples: dict[tuple[str, ...], float], sample: tuple[str, ...], value: float) -> None:
    name, *labels = sample
    assert samples[name, *sorted(labels)] == value


def test_what_a_run_could_not_do_is_why_it_is_not_ready(samples: dict[tuple[str, ...], float], health: Health) -> None:
    assert samples
    report = health.report()
    assert (report.live, report.ready) == (True, False)
    assert report.reasons[0].startswith("orders-1: DataLoss: Records were deleted")


def test_metrics_that_fail_make_health_fail_and_not_the_job(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    health = Health(stalled_after=60, clock=lambda: now)
    instruments = Instruments()
    instruments.waves.inc = fail  # type: ignore[method-assign]
    events: list[JobEvent] = []
    play(all_of(Metering(instruments, health), events.append))
    assert len(events) == len(list(run()))
    assert [record.name for record in caplog.records] == ["archiver.observer"]
    assert health.report().live
    now = 61.0
    assert not health.report().live


def fail(amount: float = 1.0) -> None:
    raise ValueError(amount)


def test_every_event_is_played() -> None:
    assert {type(event) for event in run()} == set(get_args(JobEvent))


@pytest.fixture
def spans() -> dict[str, list[ReadableSpan]]:
    exporter = InMemorySpanExporter()
    with tracer_to("http://unused", {}, exporter) as tracer:
        play(Spans(tracer))
    by_name: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        by_name.setdefault(span.name, []).append(span)
    return by_name


def test_spans_lie_in_their_wave_and_task(spans: dict[str, list[ReadableSpan]]) -> None:
    (wave,) = spans["wave"]
    assert wave.parent is None
    for name in ("task", "stage", "commit"):
        assert {span.parent and span.parent.span_id for span in spans[name]} == {wave.context.span_id}
    tasks = {span.context.span_id for span in spans["task"]}
    for name in ("fetch", "decode", "write", "upload"):
        assert {span.parent and span.parent.span_id for span in spans[name]} == tasks
    done = next(span for span in spans["task"] if span.status.status_code is StatusCode.UNSET)
    assert done.attributes is not None
    assert done.attributes["archiver.covered_to"] == 100
    assert seconds(done) == pytest.approx(3.0)
    busy = [seconds(span) for span in spans["decode"] if span.parent and span.parent.span_id == done.context.span_id]
    assert busy == pytest.approx([1.0])


def seconds(span: ReadableSpan) -> float:
    assert span.end_time is not None
    assert span.start_time is not None
    return (span.end_time - span.start_time) / 1e9


def test_errors_are_on_the_spans(spans: dict[str, list[ReadableSpan]]) -> None:
    failed = [span for span in spans["task"] if span.status.status_code is StatusCode.ERROR]
    assert [span.status.description for span in failed] == ["BrokerUnavailable: no broker answers"]


def test_json_events_are_lines_with_times_offsets_and_durations() -> None:
    out = io.StringIO()
    play(JsonLines(ArchiveScreen.lines, out))
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        "waiting",
        "topics_opened",
        "schema_registry_down",
        "table_noted",
        "schema_changed",
        "schema_change_waiting",
        "looked",
        "failed",
        "wave_planned",
        "task_finished",
        "step_finished",
        "task_finished",
        "committed",
        "step_finished",
        "schema_doubted",
        "archived",
        "finished",
    ]
    assert all("time" in event for event in events)
    assert (events[0]["on"], events[2]["error"]["message"]) == ("Kafka", "nobody answers")
    assert (events[4]["version"], events[4]["changes"][0]["column"]) == (2, "val.note")
    assert (events[-3]["doubt"], events[-3]["counts"]["unknown"]) == ("unknown", 60)
    assert events[-2]["recognition"]["value"]["unknown_bytes"] == 300
    assert events[6]["behind"] == [
        {"partition": 0, "next_offset": 10, "last_stable": 200},
        {"partition": 1, "next_offset": 10, "last_stable": 60},
    ]
    done, failed = (event for event in events if event["event"] == "task_finished")
    assert (done["source_bytes"], done["steps"]["fetch"], done["steps"]["upload"]) == (9_000, 0.5, 0.25)
    assert list(done["steps"]) == ["fetch", "decode", "write", "upload"]
    assert (done["seconds"], done["error"]) == (3.0, None)
    assert failed["error"]["kind"] == "BrokerUnavailable"


def test_topics_that_wait_for_consent_are_counted() -> None:
    instruments = Instruments()
    metering = ExpireMetering(instruments)

    def finish(topic: str, error: ContextError | None) -> None:
        retired = TopicRetired(topic=topic, table="t", error=error)
        metering(ExpireFinished(report=ExpireReport(topics=(retired,), dry_run=False, seconds=0.0)))

    def waiting() -> dict[str, float]:
        families = text_string_to_metric_families(instruments.text().decode())
        (family,) = (family for family in families if family.name == "archiver_expire_needs_consent")
        return {sample.labels["topic"]: sample.value for sample in family.samples}

    finish("orders", ConsentMissing("90s"))
    finish("clicks", None)
    assert waiting() == {"orders": 1.0, "clicks": 0.0}
    finish("orders", CatalogUnreachable("away"))
    assert waiting()["orders"] == 1.0, "nothing is known of it now"
    finish("orders", None)
    assert waiting()["orders"] == 0.0


def test_time_and_failures_of_chores_are_counted() -> None:
    instruments = Instruments()
    metering = ChoreMetering(instruments)
    failures = (StorageUnavailable("away"), ValueError("a bug"))
    metering(ChoreEnded(topic="orders", chore="compaction", seconds=2.5))
    metering(ChoreEnded(topic="orders", chore="compaction", seconds=0.5, failures=failures))
    value = instruments.registry.get_sample_value
    labels = {"topic": "orders", "chore": "compaction"}
    assert value("archiver_chore_seconds_total", labels) == 3.0
    for error in ("StorageUnavailable", "ValueError"):
        assert value("archiver_chore_failures_total", labels | {"error": error}) == 1
