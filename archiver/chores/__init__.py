"""Background work of an archive job: short chores after a commit, long ones while idle."""

__all__ = ["chore", "runner", "tidying"]
