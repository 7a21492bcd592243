"""The task that archives one range in a Spark worker, the values that go to it and come back, and the seam of sources.

Only what runs in a worker belongs here, and values that pickle; it knows nothing of tables, registry or waves.
Nothing is imported here: workers start by the modules they need.
"""

__all__ = ["values", "work"]
