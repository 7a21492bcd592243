"""The worker's task that archives one range, its values, and the seam of sources.

Knows no tables, registry or waves. Imports nothing: workers start by the modules they need.
"""

__all__ = ["values", "work"]
