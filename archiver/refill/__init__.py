"""Records that a table lost, back into it: from files that still exist, else from Kafka (ADR 0026)."""
