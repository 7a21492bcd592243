"""One topic in a run of the job: its table, its partitions' state, its waves and its commits.

`run` brings the others together: `opening` makes topic and table ready, `prefetch` and `inspection` find how partitions
stand, `finished_ranges` puts tasks' results in order, `report_builder` keeps the account. For `inspection`,
`log_bounds` says where logs begin and end, and `start_offsets` where archives begin; `continuity` says whether a log
still is the archived one, with `divergence` and `archive_reader`. `status` looks at the same and archives nothing.
`catalog_pool` has the connections for questions about many topics, and `ledgers_ahead` reads their ledgers together.
`owner_status` says what the table's owner keeps. `partitioning` holds the configured partitions against the table's,
for whoever writes by them.
"""

__all__ = [
    "catalog_pool",
    "divergence",
    "inspection",
    "ledgers_ahead",
    "opening",
    "owner_status",
    "partitioning",
    "prefetch",
    "run",
    "status",
]
