"""Generated tables."""
