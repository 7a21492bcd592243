"""Holes that were mended, each as a patch that puts it back: a suite that doesn't see one of them isn't a suite."""
