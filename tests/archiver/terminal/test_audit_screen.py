"""The table of audit entries."""

from __future__ import annotations

import io
from typing import Any

import pytest

from archiver.terminal.audit_screen import entry_listing
from archiver.terminal.console import TextConsole

BY = {"principal": "dana@prod", "host": "vm", "version": "1"}
REWRITTEN = {"rows": 207_695, "files": 25, "files_before": 25, "offsets": {"0": [[0, 9]]}, "left_out": {"erased": 35}}
RETIRED = {"rows": 0, "files": 0, "files_before": 6, "offsets": {"0": [[0, 9]]}, "left_out": {"retired": 75_063}}
PURGED = {"removal": "01J", "step": "ended", "files": 6, "bytes": 9}


def shown(act: str, details: dict[str, Any], *, width: int) -> str:
    out = io.StringIO()
    entry = {"seq": 7, "time": "2026-11-01T00:00:00Z", "act": act, "details": details, "by": BY}
    TextConsole(file=out, width=width).print(entry_listing([entry]))
    return " ".join(out.getvalue().split())


@pytest.mark.parametrize("width", [80, 120, 200])
def test_removals_count_what_they_removed(width: int) -> None:
    erased = shown("erase", REWRITTEN, width=width)
    assert "erased 35, kept 207,695 records in 25 new files, 1 partition" in erased
    assert ("records 35" in erased) or ("erase 35 25" in erased)
    retired = shown("expire", RETIRED, width=width)
    assert "retired 75,063, 1 partition" in retired
    assert ("records 75,063" in retired) or ("expire 75,063 6" in retired)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_what_was_done_is_shown_at_every_width(width: int) -> None:
    assert "step ended, removal 01J, bytes 9" in shown("purge", PURGED, width=width)
    assert "dana@prod on vm" in shown("purge", PURGED, width=width)


def test_hashes_leave_room_for_the_act() -> None:
    digest = "f603bf475e6db228f6771586f3216e8375813bd4979466f5dc6d178e76b515c6"
    begun = {"bytes": 1_229_175, "names_sha256": digest, "removal": "01J", "step": "begun"}
    assert "step begun, bytes 1,229,175, names sha256 f603bf475e6d, removal 01J" in shown("purge", begun, width=200)
    ended = {"condition_hash": digest, "deleted_files": 7, "id": "01M"}
    assert "condition hash f603bf475e6d, deleted files 7, id 01M" in shown("erase", ended, width=200)
