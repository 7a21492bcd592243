"""Evidence that others can check without the archiver: signed documents, and the trail of what was done to a table.

`trail` notes acts (`acts`), each with the hash of the one before. `folder` keeps them beside the journal. `signing`
signs JSON with an Ed25519 key and checks such signatures. What a document says, and what is done to a table, belongs to
whoever makes it or does it.
"""

__all__ = ["acts", "signing", "trail"]
