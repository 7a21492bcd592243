"""One run of the job in this process, without Spark: tests of what comes out of it are many."""

from __future__ import annotations

from pathlib import Path

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob, JobReport
from tests.inline_engine import InlineEngine


def archive_once(config: Path, *topics: str) -> JobReport:
    """Archive `topics` to their end; a failure of any partition fails the test."""
    report = ArchiveJob(load_config(config), topics, engine=InlineEngine()).run_once()
    assert report.succeeded, report
    return report
