"""Repairs of what is archived: rewriting files and bringing the registry back. Offsets and bytes never change."""
