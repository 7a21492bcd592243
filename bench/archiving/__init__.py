"""The sides of bench/archive.py."""
