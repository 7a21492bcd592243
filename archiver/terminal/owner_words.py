"""Words for open erasures and blocking snapshots."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from archiver.terminal.amounts import counted
from archiver.topics.owner_status import OpenErasure
from catalog.iceberg.deletion_gate import GC_ENABLED

_SHOWN: Final = 5


def setting_words(settings: Mapping[str, str]) -> str:
    return " and ".join(f"`{key}` = `{value}`" for key, value in settings.items())


def snapshot_words(snapshots: Collection[int]) -> str:
    more = ", …" if len(snapshots) > _SHOWN else ""
    ids = ", ".join(map(str, list(snapshots)[:_SHOWN]))
    return f"{counted(len(snapshots), 'snapshot')} ({ids}{more})"


def erasure_remark(topic: str, erasure: OpenErasure) -> str:
    head = f"erasure {erasure.id} isn't finished"
    if GC_ENABLED in erasure.settings:
        return (
            f"{head}: {setting_words(erasure.settings)} forbids the deletion of files. Run `archiver erase {topic}"
            " --finish` when no other table needs them and it is `true`"
        )
    if erasure.snapshots:
        return (
            f"{head}: {snapshot_words(erasure.snapshots)} with erased records are kept by"
            f" {setting_words(erasure.settings)}. To expire them, run `archiver erase {topic} --finish"
            " --expire-protected-snapshots`"
        )
    if not erasure.is_searched:
        return f"{head}: it stopped before all its records were found. Run it again with its condition"
    return f"{head}: run `archiver erase {topic} --finish`"
