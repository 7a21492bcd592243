"""Numbered SQL files, applied in order by `catalog.postgres`; an applied one is never changed."""
