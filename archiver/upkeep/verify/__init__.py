"""`archiver verify`: read tables whole and prove that they have what was archived. Changes nothing."""

__all__ = ["choice", "document", "job", "report"]
