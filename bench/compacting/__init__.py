"""Shared code of compaction benchmarks."""
