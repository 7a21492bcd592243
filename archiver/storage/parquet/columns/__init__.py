"""Writes Parquet files column by column from Arrow's memory: levels, encodings, pages, indexes and the footer.

Sources: apache/parquet-format (parquet.thrift, Encodings.md, BloomFilter.md, PageIndex.md), Arrow's C data interface.
"""
