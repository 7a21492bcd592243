"""A topic as the jobs see it: opened with its table, the state of its partitions, and what `archiver status` reports.

`opening` makes topic and table ready for tasks, `inspection` reads how far a topic is archived and inspects its
partitions, `state_reader` gives the `state` of topics, and `archived_state` the archived part of it without Kafka.
`partition_inspector` gets the bounds of logs from `log_bounds` and the beginning of archives from `start_offsets`;
`continuity` says whether a log still is the archived one, with `divergence` and `archive_reader`. `shared_tables` names
topics that would share a table. `owner_status` says what the table's owner keeps, `hidden_rows` what engines leave out,
`engine_limits` which columns they don't take, and `catalog_upkeep` what the catalog does by itself. `catalog_pool` and
`ledgers_ahead` read many topics together. `assigning` and `schema_choice` find the columns of the next records, and
`schema_approval` approves changes that wait. Nothing here archives a record.
"""

__all__ = [
    "archive_reader",
    "archived_state",
    "assigning",
    "catalog_pool",
    "catalog_upkeep",
    "continuity",
    "divergence",
    "engine_limits",
    "hidden_rows",
    "inspection",
    "leases",
    "ledgers_ahead",
    "log_bounds",
    "opening",
    "owner_status",
    "partition_inspector",
    "partitioning",
    "schema_approval",
    "schema_choice",
    "seen_partition",
    "shared_tables",
    "state",
    "state_reader",
    "waiting_errors",
]
