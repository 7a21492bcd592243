"""From Kafka to the table: plan, fetch, translate, rotate, upload, stage, commit, confirm."""
