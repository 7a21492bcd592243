"""The account of a table by partition and offset: which rows it must have, and why other rows are gone (ADR 0072).

Values and pure functions. Nothing here knows files or does I/O.
"""

__all__ = ["acts", "chains", "comparison", "interval"]
