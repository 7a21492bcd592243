"""One topic in a run of the job: its table, its partitions' state, its waves and its commits."""
