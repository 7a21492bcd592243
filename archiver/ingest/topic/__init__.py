"""One topic in a run of the job: its waves and its commits.

`prefetch` reads the state of many topics for their plans, `run` plans a topic's waves and takes its tasks' results,
`finished_ranges` puts these in order, `acceptance` has the losses that a run accepts, `unreadable_offsets` finds
offsets that a leader can't give, `target` says what tasks share, `kept_rows` checks that the table still has what
was committed, and `report_builder` keeps the account.
"""

__all__ = ["acceptance", "memory", "prefetch", "run", "target"]
