"""Background work of an archive job on its topics: small things after a commit, long ones while the job is idle.

`chore` has what a chore is and what it gets for one turn, `runner` gives the turns and keeps account of them, `tidying`
is the first chore. Compaction and retirement are chores of `archiver.upkeep`.
"""

__all__ = ["chore", "runner", "tidying"]
