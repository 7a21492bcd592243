"""Rows from clients: acknowledged in a write-ahead log, then written to files and committed.

Independent of the clients' protocol.
"""
