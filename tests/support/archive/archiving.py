"""One run of the job in this process, and the configuration after the registry was lost."""

from __future__ import annotations

import json
from pathlib import Path

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.ingest.job import ArchiveJob, JobReport
from tests.support.servers.stack import Stack, unique


def archive_once(config: Path, *topics: str, engine: Engine) -> JobReport:
    """Archive `topics` to their end; a failure of any partition fails the test."""
    report = ArchiveJob(load_config(config), topics, engine=engine).run_once()
    assert report.succeeded, report
    return report


def without_registry(stack: Stack, config: Path, *, with_journal: bool) -> Path:
    """The configuration with an empty database and, if so asked, an empty journal."""
    settings = load_config(config)
    text = config.read_text().replace(json.dumps(settings.registry.dsn), json.dumps(stack.database()))
    if not with_journal:
        text = text.replace(json.dumps(settings.archive.journal), json.dumps(f"s3://{stack.bucket}/{unique('none')}"))
    path = config.with_name("rebuilt.toml")
    path.write_text(text)
    return path
