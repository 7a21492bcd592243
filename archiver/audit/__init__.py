"""Evidence that can be checked without the archiver: signed documents and audit trails."""

__all__ = ["acts", "check", "checkpoints", "documents", "entry", "export", "folder", "signing", "trail", "trails"]
