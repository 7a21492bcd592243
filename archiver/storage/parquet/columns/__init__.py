"""Writes Parquet files column by column, from Arrow's memory: levels, encodings, pages, indexes and the footer.

`file_writer` writes a file by the plan of each column (`plan`). The kernel `column_encoder` makes the pages of one
column of a row group; the `.pxd` files are its parts. Sources: the specification in apache/parquet-format
(parquet.thrift, Encodings.md, BloomFilter.md, PageIndex.md), and Arrow's C data interface.
"""
