"""Rows from clients of the archiver's servers: acknowledged in a write-ahead log, then written to files and committed.

Independent of the protocol that clients speak. `TopicLog` is the log of one topic, `TopicFiles` writes its files.
"""
