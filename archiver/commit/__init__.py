"""Commit staged files to the table, and check that the table still has what was committed.

`commit_pending` commits, `Presence` checks the objects of staged files, `check_archive` checks the table,
`compare_rows` compares rows that others may have written. `snapshot_effects` says what snapshots of other
engines did to rows. `retention_consent` says whether a retention waits for consent. Planning and translating belong in `archiver.ingest`, repairs in `archiver.upkeep`.
"""

__all__ = [
    "commit_staged",
    "compare_rows",
    "find_holes",
    "known_rows",
    "retention_consent",
    "snapshot_effects",
    "table_check",
    "table_rows",
    "tidying",
]
