"""Rewriting files of a table: commit a rewrite once, record it, and settle rewrites that a kill interrupted.

`table_work` is what all of it works with in the job, `target` what tasks work with. `in_place` commits a planned rewrite, `settling` finds out what became of
interrupted ones, with `outcomes` and `endings`. `upload_claims` keeps new files from the removal of orphans. What a
rewrite changes is decided by the job: compaction, reprocessing, retirement, erasure.
"""

__all__ = ["in_place", "settling", "table_work", "target", "upload_claims"]
