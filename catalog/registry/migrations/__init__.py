"""Numbered SQL migrations, applied in order by `catalog.registry.postgres`. Released ones never change."""
