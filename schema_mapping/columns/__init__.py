"""Columns of any value format: field ids, the ledger that keeps them, evolution, and Iceberg's and Arrow's types."""
