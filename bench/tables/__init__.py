"""Made-up tables, for benchmarks of planning."""
