"""Rewriting files of a table: commit a rewrite once, record it, and settle rewrites that a kill interrupted.

The job works with a `table_work`: `in_place` commits a planned rewrite, `rounds` commits many and plans again,
`settling` finds out what became of interrupted ones. `upload_claims` keeps new files from the removal of orphans. Tasks
work with a `target`, and write each `rewritten_file`. What a rewrite changes is decided by the job: compaction,
reprocessing, retirement, erasure.
"""

__all__ = ["in_place", "rewritten_file", "rounds", "settling", "table_work", "target", "upload_claims"]
