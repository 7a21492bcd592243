"""Writes Parquet files column by column from Arrow's memory: levels, encodings, pages, indexes and the footer.

The kernel `column_encoder` makes the pages of one column of a row group. Sources: apache/parquet-format
(parquet.thrift, Encodings.md, BloomFilter.md, PageIndex.md) and Arrow's C data interface.
"""
