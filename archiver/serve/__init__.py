"""Servers that give an archive to unmodified clients.

`reading` serves whole batches from shared memory and knows no protocol. `groups` holds consumer groups and their
offsets. `nodes` connects several servers to a cluster. `security` authenticates and authorizes clients. `kafka`
implements the Kafka protocol. `processes` runs several servers on one machine, and `heap` returns freed memory to the
system. Serving writes no table, and needs neither Kafka nor Spark.
"""

__all__ = ["heap", "kafka", "nodes", "processes"]
