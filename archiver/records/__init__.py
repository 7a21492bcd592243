"""Selections of records: partitions, a start and an end, and conditions on records.

`replay`, `republish`, `serve` and the jobs of `upkeep` select records with these. Reading the records belongs in
`archiver.archive`.
"""

__all__ = ["selection", "where", "where_syntax"]
