"""`archiver orphans`: find and delete files that no table refers to and none ever will.

`Orphans` runs it. `search` finds them with `references`, `removal` deletes them, `noted` tells the audit trail.
"""

__all__ = ["job", "noted", "references", "removal", "report"]
