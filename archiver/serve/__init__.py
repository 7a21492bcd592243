"""Servers that give an archive to readers who know nothing of it.

`reading` gives whole batches of archived topics out of memory that all readers share; it knows no protocol. `groups`
knows who reads what, and how far each has come. `nodes` knows the other servers of the archive, and which of them
coordinates a group. `security` knows who may come in, and what they may do. `kafka` speaks the Kafka protocol with
clients. `processes` runs several on one machine, and `heap` has it give
freed memory back. Nothing here writes a table, and nothing needs Kafka or Spark.
"""

__all__ = ["heap", "kafka", "nodes", "processes"]
