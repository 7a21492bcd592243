"""Queries of flights, and the engines."""
