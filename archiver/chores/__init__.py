"""Background work of an archive job on its topics: short chores after a commit, long ones while it is idle."""

__all__ = ["chore", "runner", "tidying"]
