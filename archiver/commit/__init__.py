"""Commits staged files, and checks that the table still has what was committed."""

__all__ = [
    "check_rows",
    "commit_staged",
    "compare_rows",
    "file_values",
    "find_holes",
    "footers",
    "journal_completion",
    "known_rows",
    "lacking_ranges",
    "left_files",
    "registry_lag",
    "retention_consent",
    "snapshot_effects",
    "table_check",
    "table_ranges",
    "table_rows",
    "tidying",
]
