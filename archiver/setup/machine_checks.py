"""Checks of the spool, Java, and Spark."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from archiver.audit.signing import SigningKey
from archiver.config.model import ArchiveSection, AuditSection
from archiver.engine.java import found_java
from archiver.setup.findings import CheckOutcome, Finding, failure
from archiver.storage.spool import check_spool

_GIBIBYTE = 1 << 30


def look_at_spool(section: ArchiveSection) -> Iterator[Finding]:
    root = section.spool
    missing = [folder for folder in (root, *root.parents) if not folder.exists() and not folder.is_symlink()]
    free = shutil.disk_usage(_first_there(root)).free
    try:
        check_spool(root)
        mode = f"mode {stat.S_IMODE(root.stat().st_mode):04o}"
    finally:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
    room = f"may use {section.spool_size / _GIBIBYTE:,.1f} GiB, and {free / _GIBIBYTE:,.1f} GiB are free"
    where = f"{root}, {mode}{', made when it is needed' if missing else ''}: {room}"
    if free >= section.spool_size:
        yield Finding(part="Spool", detail=where)
    else:
        detail = f"{where}. Give it room, or set a smaller spool_size in [archive]"
        yield Finding(part="Spool", outcome=CheckOutcome.WARNING, detail=detail)


def look_at_signing_key(section: AuditSection) -> Iterator[Finding]:
    if section.signing_key is not None:
        key = SigningKey.load(section.signing_key)
        yield Finding(part="Signing key", detail=f"{section.signing_key}: Ed25519, id {key.id}")


def look_at_java(options: Mapping[str, str]) -> Iterator[Finding]:
    if "remote" in options:
        yield Finding(part="Java", outcome=CheckOutcome.SKIPPED, detail="Spark Connect needs none here")
        return
    java, version = found_java(os.environ)
    yield Finding(part="Java", detail=f"Java {version}, {java}")


def look_at_spark(options: Mapping[str, str]) -> Iterator[Finding]:
    from archiver.engine.spark import SparkEngine

    with SparkEngine.start(options, preloaded=(__name__,)) as engine:
        (outcome,) = engine.run_tasks([None], worker_python)
        if outcome.error is not None:
            yield failure("Spark", outcome.error)
            return
        version = engine.session.version
        yield Finding(part="Spark", detail=f"Spark {version}, {engine.slots} slots, workers on {outcome.result}")


def worker_python(_task: None) -> str:
    return f"Python {platform.python_version()}"


def _first_there(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
