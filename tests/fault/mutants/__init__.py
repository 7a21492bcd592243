"""Mended holes as patches: the tests must notice each of them."""
