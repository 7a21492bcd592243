"""The sides of bench/archive.py. Each archives the same topic in a separate process."""
