"""The database's migrations: numbered SQL files, which `catalog.registry.postgres` applies in order.

A migration that was released never changes.
"""
