"""Numbered SQL files, applied in order by `catalog.registry.postgres`; an applied one is never changed."""
