"""What people and scripts see of a command: screens, tables, words and JSON lines.

A `_screen` module describes a command's events once: words for people, fields for machines. A job with progress gives
its screen to `output`, a command with one answer gives both forms to `answer`; these choose. What is both a column and
a JSON value is a `Field`. Everything is printed on a `console`, which takes text as it is: tables as a
`listing`, errors as `error_text`, numbers as `amounts`, schemas in `schema_words`, what a table's owner keeps in
`owner_words`. Modules here only take events and values; the job's room decides which there are.
"""

__all__ = [
    "amounts",
    "answer",
    "archive_screen",
    "audit_screen",
    "check_screen",
    "compact_screen",
    "console",
    "erase_screen",
    "error_text",
    "expire_screen",
    "files_screen",
    "find_screen",
    "groups_screen",
    "hold_screen",
    "journal_screen",
    "json_lines",
    "listing",
    "orphans_screen",
    "output",
    "rebuild_screen",
    "replay_screen",
    "reprocess_screen",
    "schema_screen",
    "schema_words",
    "status_screen",
    "topics_screen",
    "transfer_screen",
    "users_screen",
    "verify_screen",
]
