"""Shared code of benchmarks of compaction."""
