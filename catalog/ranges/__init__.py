"""Ranges of offsets and the files that hold them: values and pure functions that registry, journal and tables share."""
