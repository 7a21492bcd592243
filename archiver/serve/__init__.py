"""Servers that give an archive to unmodified clients, without Kafka, Spark or writing a table.

`reading` serves whole batches and knows no protocol; `kafka` implements the protocol; `nodes` makes a cluster;
`security` is shared with `archiver/flight`.
"""

__all__ = ["heap", "kafka", "nodes", "processes", "security"]
