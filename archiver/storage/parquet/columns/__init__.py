"""Writes Parquet files column by column from Arrow's memory.

Sources: apache/parquet-format (parquet.thrift, Encodings.md, BloomFilter.md, PageIndex.md), Arrow's C data interface.
"""
