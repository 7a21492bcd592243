"""Evidence that others can check without the archiver: signed documents, and the trail of what was done to a table.

`trail` notes acts (`acts`), each with the hash of the one before. They lie beside the journal, with `checkpoints` that
are signed now and then. `trails` finds trails, `check` judges them, `export` copies them. `signing` signs JSON with an
Ed25519 key and checks such signatures. What a document says, and what is done to a table, belongs to whoever makes it
or does it.
"""

__all__ = ["acts", "check", "checkpoints", "export", "folder", "signing", "trail", "trails"]
