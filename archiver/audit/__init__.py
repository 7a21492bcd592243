"""Evidence that can be checked without the archiver."""

__all__ = ["acts", "check", "checkpoints", "documents", "entry", "export", "folder", "signing", "trail", "trails"]
