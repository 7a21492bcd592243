"""What the archiver remembers: the registry in Postgres, and the tables in an Iceberg REST catalog.

`registry` keeps the state of topics and ranges, `iceberg` loads and commits to tables, `ranges` are the values that
both share, `journal_entries` describes what the journal keeps. Nothing here reads Kafka or writes data files: that is
the work of `archiver`.
"""
