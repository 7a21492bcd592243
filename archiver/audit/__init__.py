"""Evidence that others can check without the archiver: signed documents.

`signing` signs JSON with an Ed25519 key and checks such signatures. What a document says belongs to whoever makes it.
"""

__all__ = ["signing"]
