"""Audit entries before and after a deletion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Literal

from archiver.audit.acts import Noted
from archiver.audit.trail import AuditTrail
from archiver.upkeep.orphans.report import Orphan, TopicOrphans
from catalog.model import new_id


@contextmanager
def noted_deletion(
    trail: AuditTrail, kind: Literal["orphans", "purge"], report: TopicOrphans, *, gone: Sequence[Orphan] = ()
) -> Iterator[None]:
    """After a kill the first entry names all files that may be deleted.

    Without candidates beside `gone` nothing is written.
    """
    before = {item.path for item in gone}
    going = [orphan for orphan in report.orphans if orphan.path not in before]
    if not going:
        yield
        return
    deletion = new_id()
    trail.record(_noted(kind, deletion, "begun", going))
    try:
        yield
    finally:
        went = [item for item in report.deleted if item.path not in before]
        trail.record(_noted(kind, deletion, "ended", went))


def _noted(kind: Literal["orphans", "purge"], deletion: str, step: str, files: Sequence[Orphan]) -> Noted:
    names = "\n".join(sorted(file.name for file in files))
    details = {
        "removal": deletion,
        "step": step,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "names_sha256": sha256(names.encode()).hexdigest(),
    }
    return Noted(kind=kind, id=f"{kind}-{deletion}-{step}", details=details)
