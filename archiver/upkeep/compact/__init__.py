"""`archiver compact`: small, overlapping and partly deleted files become few sorted ones, with the same records.

`choice` picks files, `task` merges a group of them (`source_rows`, `row_stream`, `new_files`) and reads the result back
(`read_back`), `rounds` commits what tasks made, `job` goes through the topics, `chore` does so between archive runs.
"""

__all__ = ["choice", "chore", "job", "report"]
