"""What people and scripts see of a command: screens, tables, words and JSON lines.

A job with progress has a `_screen` module for people and a `_json` module for machines; `output` chooses. A command
with one answer gives both to `answer`. Everything is printed on a `console`, which takes text as it is: tables as a
`listing`, errors as `error_text`, numbers as `amounts`, schemas in `schema_words`, what a table's owner keeps in
`owner_words`. Modules here only take events and values; the job's room decides which there are.
"""

__all__ = [
    "amounts",
    "answer",
    "archive_json",
    "archive_screen",
    "audit_screen",
    "check_screen",
    "compact_json",
    "compact_screen",
    "console",
    "erase_json",
    "erase_screen",
    "error_text",
    "expire_json",
    "expire_screen",
    "groups_screen",
    "hold_screen",
    "journal_screen",
    "json_lines",
    "listing",
    "orphans_json",
    "orphans_screen",
    "output",
    "rebuild_screen",
    "replay_screen",
    "reprocess_json",
    "reprocess_screen",
    "schema_screen",
    "schema_words",
    "status_screen",
    "topics_screen",
    "transfer_json",
    "transfer_screen",
    "users_screen",
    "verify_json",
    "verify_screen",
]
