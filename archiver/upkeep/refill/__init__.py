"""`archiver refill`: bringing back records that a table lost: from files that still exist, else from Kafka."""
