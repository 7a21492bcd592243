"""The worker's task that archives one range.

Knows no tables, registry or waves. Imports nothing: workers start by the modules they need.
"""

__all__ = ["values", "work"]
