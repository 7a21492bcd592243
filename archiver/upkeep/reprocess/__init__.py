"""`archiver reprocess`: decoding rows with `__err__` again after a schema was mended."""
