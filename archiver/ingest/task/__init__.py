"""The worker's task that archives one range. Knows no tables, registry or waves.

Imports nothing, for fast workers.
"""

__all__ = ["values", "work"]
