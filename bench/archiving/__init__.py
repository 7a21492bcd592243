"""The sides of bench/archive.py: each archives the same topic, in a process of its own."""
