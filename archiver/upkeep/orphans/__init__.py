"""`archiver orphans`: find and delete files that no table refers to and none will.

`search` finds them with `references`, `removal` deletes them, `noted` writes the audit trail.
"""

__all__ = ["job", "noted", "references", "removal", "report"]
