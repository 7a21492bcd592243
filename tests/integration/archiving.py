"""One run of the job in this process."""

from __future__ import annotations

from pathlib import Path

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.ingest.job import ArchiveJob, JobReport


def archive_once(config: Path, *topics: str, engine: Engine) -> JobReport:
    """Archive `topics` to their end; a failure of any partition fails the test."""
    report = ArchiveJob(load_config(config), topics, engine=engine).run_once()
    assert report.succeeded, report
    return report
