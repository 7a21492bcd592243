"""Commit rewrites of files exactly once, and settle rewrites that a kill interrupted."""

__all__ = ["in_place", "rewritten_file", "rounds", "settling", "table_work", "target", "upload_claims"]
