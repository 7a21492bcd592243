"""Generated tables, for benchmarks of planning."""
