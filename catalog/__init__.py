"""What is remembered: the registry in Postgres and the tables in an Iceberg REST catalog."""
