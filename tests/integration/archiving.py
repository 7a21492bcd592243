"""One run of the job in this process, on the session that Spark tests share."""

from __future__ import annotations

from pathlib import Path

from archiver.ingest.job import ArchiveJob, JobReport

from archiver.config import load_config


def archive_once(config: Path, *topics: str) -> JobReport:
    """Archive `topics` to their end; a failure of any partition fails the test."""
    report = ArchiveJob(load_config(config), topics).run_once()
    assert report.succeeded, report
    return report
