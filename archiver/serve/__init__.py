"""Servers that give an archive to unmodified clients.

`reading` knows no protocol, `kafka` implements it, `nodes` makes a cluster. `archiver/flight` also uses `security`.
"""

__all__ = ["heap", "kafka", "nodes", "processes", "security"]
