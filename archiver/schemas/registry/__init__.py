"""Schema registries, independent of formats."""
