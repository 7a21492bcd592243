from __future__ import annotations

from archiver.errors import DataLoss, UnknownTopic
from archiver.ingest.report import JobReport, PartitionReport, TopicReport
from archiver.ingest.task.values import TaskMetrics
from catalog.model import DataFileInfo, TranslatedRange
from catalog.recognition import Fit, Recognition

FITS = Recognition(value=Fit(values=2))


def span(start: int, end: int, rows: int | None = None, digest: str | None = "f" * 32) -> TranslatedRange:
    files = (
        ()
        if rows is None
        else (DataFileInfo(path="p", size_bytes=100, rows=rows, raw_values=1, digest=digest, recognition=FITS),)
    )
    return TranslatedRange(
        id="x",
        topic="t",
        partition=0,
        start_offset=start,
        end_offset=end,
        schema_version=1,
        leader_epoch=0,
        files=files,
        created_ms=0,
    )


def test_committed_ranges_add_up():
    report = PartitionReport(partition=0).committed([span(5, 8, rows=3), span(8, 9)]).committed([span(9, 20, rows=7)])
    assert report == PartitionReport(
        partition=0,
        from_offset=5,
        to_offset=20,
        records=10,
        files=2,
        file_bytes=200,
        raw_values=2,
        digest="f" * 31 + "e",
        recognition=FITS + FITS,
    )


def test_a_file_without_a_digest_leaves_none_to_report():
    report = PartitionReport(partition=0).committed([span(5, 8, rows=3), span(8, 9, rows=1, digest=None)])
    assert report.digest is None
    assert TopicReport(topic="a", table="k.a", partitions=(report,)).digest is None
    assert TopicReport(topic="a", table="k.a", partitions=(PartitionReport(partition=0),)).digest == "0" * 32


def test_any_error_anywhere_is_a_failed_job():
    loss = DataLoss("gone")
    half = Recognition(value=Fit(values=2, raw=1))
    parts = (PartitionReport(partition=0, recognition=half), PartitionReport(partition=1, recognition=FITS))
    fine = TopicReport(topic="a", table="k.a", partitions=parts)
    bad = TopicReport(topic="b", table="k.b", partitions=(PartitionReport(partition=3, error=loss),), error=loss)
    assert fine.raw_share == 0.25
    assert bad.raw_share == 0.0
    assert bad.failures == ((None, loss), (3, loss))
    assert JobReport(topics=(fine,), waves=1, seconds=0.0).succeeded
    assert not JobReport(topics=(fine, bad), waves=1, seconds=0.0).succeeded
    assert not JobReport(topics=(fine,), waves=1, seconds=0.0, error=loss).succeeded


def test_metrics_add_up_by_name():
    assert TaskMetrics(records=1, fetch_seconds=0.5) + TaskMetrics(records=2, files=1) == TaskMetrics(
        records=3, files=1, fetch_seconds=0.5
    )


def test_early_stop_keeps_the_previous_runs_failures() -> None:
    error = UnknownTopic("no such topic", topic="gone")
    before = JobReport(
        topics=(TopicReport(topic="gone", table="kafka.gone", error=error), TopicReport(topic="orders", table="t")),
        waves=1,
        seconds=1.0,
    )
    cut = JobReport(topics=(TopicReport(topic="orders", table="t", commits=1),), waves=0, seconds=0.1, stopped=True)
    after = cut.following(before)
    assert [(topic.topic, topic.commits) for topic in after.topics] == [("gone", 0), ("orders", 1)]
    assert not after.succeeded
    whole = JobReport(topics=(TopicReport(topic="orders", table="t"),), waves=0, seconds=0.1)
    assert whole.following(before) is whole
    away = JobReport(topics=(), waves=0, seconds=0.1, error=error)
    assert JobReport(topics=(), waves=0, seconds=0.1, stopped=True).following(away).error is error
