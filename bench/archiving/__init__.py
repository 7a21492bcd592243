"""The sides of bench/archive.py, each in a separate process."""
