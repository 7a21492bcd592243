"""Evidence that can be checked without the archiver: signed documents, and the trail of a table's acts.

`trail` records acts (`acts`), each with the hash of the previous one, beside the journal, with signed `checkpoints`.
`trails` finds trails, `check` checks them, `export` copies them. `signing` signs JSON with an Ed25519 key.
"""

__all__ = ["acts", "check", "checkpoints", "export", "folder", "signing", "trail", "trails"]
