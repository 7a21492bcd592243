"""The output of commands: screens, tables, words and JSON lines.

Modules here take only events and values.
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
    "index_screen",
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
