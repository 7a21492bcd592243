"""Commit staged files to the table, and check that the table still has what was committed.

`commit_pending` commits, `Presence` checks the objects of staged files, `check_archive` checks the table. Planning and
translating belong in `archiver.ingest`, repairs in `archiver.upkeep`.
"""
