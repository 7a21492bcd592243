"""The account of a table by partition and offset: expected rows, and why the remaining ones are gone (ADR 0072)."""

__all__ = ["acts", "chains", "comparison", "interval", "offset_range"]
