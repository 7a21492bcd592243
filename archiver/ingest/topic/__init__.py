"""One topic in a run of the job."""

__all__ = ["acceptance", "memory", "prefetch", "run", "target"]
