"""`archiver compact`: merge small, overlapping and partly deleted files into few sorted files with the same records.

`choice` picks files, `task` merges a group of them, `rounds` commits the results, `job` iterates over the topics.
"""

__all__ = ["choice", "chore", "job", "report"]
