"""Data files and the object store they live in: the segment seam, the formats behind it, and uploads."""
