"""Archived rows as readers need them: the table's files, what is deleted of them, and the records they stand for."""
