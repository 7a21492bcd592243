"""Named points at which a test can make a job fail: before and after steps.

`ARCHIVER_FAULT=after_stage:kill` sends SIGKILL there, `:raise` raises `InjectedFault`, `:pause` sleeps until killed,
`:stop` suspends until SIGCONT; `@n` selects the n-th pass of a process: `after_upload:kill@2`. Points of tasks act in
Spark's Python workers.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from enum import StrEnum
from typing import Final

from archiver.errors import ConfigError, InjectedFault

VARIABLE: Final = "ARCHIVER_FAULT"
_FAULT = re.compile(r"(?P<point>\w+):(?P<action>kill|raise|pause|stop)(@(?P<passage>\d+))?")
_PAUSE_SECONDS: Final = 3600
_passages: Counter[str] = Counter()  # of the process, as the variable is
_counting = threading.Lock()


class FaultPoint(StrEnum):
    AFTER_ASSIGN = "after_assign"
    AFTER_CREATE = "after_create"
    AFTER_PLAN = "after_plan"
    BEFORE_UPLOAD = "before_upload"
    AFTER_UPLOAD = "after_upload"
    BEFORE_STAGE = "before_stage"
    AFTER_STAGE = "after_stage"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"
    AFTER_CONFIRM = "after_confirm"


class TransferPoint(StrEnum):
    TRANSFER_BEGUN = "transfer_begun"
    RECORDS_WRITTEN = "records_written"
    PROGRESS_WRITTEN = "progress_written"
    TRANSFER_COMMITTED = "transfer_committed"


class AuditPoint(StrEnum):
    AUDIT_RECORDED = "audit_recorded"
    AUDIT_WRITTEN = "audit_written"
    PACK_WRITTEN = "pack_written"


class RemovalPoint(StrEnum):
    SNAPSHOTS_EXPIRED = "snapshots_expired"
    FILES_DELETED = "files_deleted"
    ERASURE_NOTED = "erasure_noted"


class IntakePoint(StrEnum):
    WAL_APPENDED = "wal_appended"
    WAL_SYNCED = "wal_synced"
    TURN_BEGUN = "turn_begun"
    FILES_UPLOADED = "files_uploaded"
    FILES_STAGED = "files_staged"
    FILES_COMMITTED = "files_committed"
    WAL_REMOVED = "wal_removed"


class JournalPoint(StrEnum):
    SUMMARY_WRITTEN = "summary_written"
    SUMMARY_COMPARED = "summary_compared"
    ENTRIES_REMOVED = "entries_removed"


_KNOWN: Final = (*FaultPoint, *TransferPoint, *AuditPoint, *RemovalPoint, *JournalPoint, *IntakePoint)


def pass_point(point: FaultPoint | TransferPoint | AuditPoint | RemovalPoint | JournalPoint | IntakePoint) -> None:
    """Raises ConfigError and InjectedFault."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return
    fault = _FAULT.fullmatch(setting)
    if fault is None or fault["point"] not in _KNOWN:
        raise ConfigError(
            f"{VARIABLE} is POINT:kill, :raise, :pause or :stop, with @n for the n-th passage",
            value=setting,
            points=[str(name) for name in _KNOWN],
        )
    if fault["point"] != point:
        return
    with _counting:
        _passages[point] += 1
        passage = _passages[point]
    if fault["passage"] is not None and passage != int(fault["passage"]):
        return
    match fault["action"]:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise InjectedFault("A test asked for a failure here", point=str(point))
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            time.sleep(_PAUSE_SECONDS)
