"""What comes before the first record: a first configuration from what a cluster has, and checks of all that one names.

`check` runs the checks, `findings` has their values and time limits; the checks themselves are in `machine_checks`,
`server_checks`, `name_checks`, `table_checks`, `partition_checks`, `engine_checks` and `value_checks`; the last two
share `read_schemas`. `cluster_topics` lists what a cluster has, `samples` looks at a few records, `first_config` is the
text of a configuration, and `write_config` makes the file. Archiving itself belongs to `archiver.ingest`.
"""

__all__ = ["check", "cluster_topics", "findings", "partition_checks", "write_config"]
