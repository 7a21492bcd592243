"""The registry: what the archiver remembers in Postgres, by trade (docs/operations.md)."""

from catalog.registry.registry import FileClaims, MissingFiles, Part, Registry, RegistryReader, in_transaction

__all__ = ["FileClaims", "MissingFiles", "Part", "Registry", "RegistryReader", "in_transaction"]
