"""Commit staged files to the table, and check that the table still has what was committed.

`commit_pending` commits, `Presence` checks the objects of staged files, `check_archive` checks the table,
`compare_rows` compares rows that others may have written, `snapshot_effects` judges snapshots of other engines.
`table_ranges` and `footers` find committed ranges that registry or journal lack, `lacking_ranges` and
`journal_completion` add them, `registry_lag` says that some are missing. `retention_consent` says whether a retention
waits for consent. Planning and translating belong in `archiver.ingest`, repairs in `archiver.upkeep`.
"""

__all__ = [
    "check_rows",
    "commit_staged",
    "compare_rows",
    "find_holes",
    "footers",
    "journal_completion",
    "known_rows",
    "lacking_ranges",
    "registry_lag",
    "retention_consent",
    "snapshot_effects",
    "table_check",
    "table_ranges",
    "table_rows",
    "tidying",
]
