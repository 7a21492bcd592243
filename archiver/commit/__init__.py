"""Committing staged files to the table, and checking that the table still has what was committed."""
