"""What benchmarks of compaction share."""
