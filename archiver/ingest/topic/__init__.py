"""One topic in a run of the job: its waves and its commits."""

__all__ = ["acceptance", "memory", "prefetch", "run", "target"]
