"""Data files and the object store they live in: the segment seam, its Parquet form, and uploads."""
