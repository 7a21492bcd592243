"""The Iceberg tables of an archive in a REST catalog: load, create, commit and settle.

`TableCatalog` is the way in; `ArchiveTable` is a loaded table. Whatever reads or writes table metadata belongs here.
Nothing here knows Postgres, and data files are read and written elsewhere.
"""
