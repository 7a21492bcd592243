"""The Iceberg tables of an archive in a REST catalog: load, make, commit, settle. No Postgres here."""
