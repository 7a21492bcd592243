"""Writes data files: decoded batches become rows, rows become files of bounded size, files are uploaded.

What decides about the content, the partition or the end of a data file belongs here; ingest, refill and reprocess use
it. Reading Kafka, encoding a file format (`archiver.storage`) and committing files (`archiver.commit`) don't.
Nothing is imported here: workers start by the modules they need.
"""
