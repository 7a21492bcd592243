"""What was staged, from the registry into the table: by the job, and by upkeep for a job that is gone."""
