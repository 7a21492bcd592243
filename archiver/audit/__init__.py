"""Evidence that can be checked without the archiver: signed documents, and the trail of a table's acts."""

__all__ = ["acts", "check", "checkpoints", "documents", "entry", "export", "folder", "signing", "trail", "trails"]
