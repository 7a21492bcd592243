"""`archiver refill`: bring back records that a table lost, from files that still exist, else from Kafka.

`RefillJob` runs it. `originals` finds the files, `from_kafka` archives lost offsets again, `mending` and `copying` make
files with just the missing rows, `steps` connects to the servers.
"""

__all__ = ["job", "report"]
